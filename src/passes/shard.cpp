#include "passes/shard.h"

#include "base/error.h"
#include "graph/node_error.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/redistribute.h"
#include "ops/reduce.h"
#include "passes/choose_way.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_code.h"
#include "passes/pad_shards.h"
#include "passes/seed_cuts.h"
#include "passes/shares.h"
#include "passes/trim_sums.h"
#include "passes/wanted_cuts.h"
#include "passes/whole_graph.h"

#include <algorithm>
#include <utility>

namespace tokamak {
namespace {

class Sharder {
 public:
  Sharder(const Graph& graph, const Mesh& mesh, const ArgumentCuts& cuts, const SumCuts& sums, bool ordered,
          bool gathers_once)
      : mesh_(mesh), source_(graph), to_(graph.name()), g_(to_), shares_(mesh, g_),
        wanted_(find_wanted(source_, mesh, cuts)), chooser_(source_, shares_, wanted_, mesh, ordered),
        gathers_once_(gathers_once) {
    for (const auto& [value, of_sum] : sums) wanted_[value] = placements_of(of_sum, mesh);
    for (const Argument& argument : graph.arguments()) add_argument(argument, cuts);
  }

  Graph run() {
    size_t nodes = whole_.nodes().size();  // what is decomposed comes behind them
    for (size_t n = 0; n < nodes; ++n) {
      Node node = whole_.nodes()[n];
      enter(node.phase);
      naming(node, [&] { visit(node, source_.rules()[n]); });
      settle_gradients(node);
    }
    // Results come last: they are whole, and what is stored should not be a part of what was gathered for them, as they
    // may be removed again (a chunk's end, passes/split_chunk.h).
    for (const Update& update : whole_.updates())
      to_.add_update(given_.at(update.target).value, at_end(update.value, given_.at(update.target).at));
    for (const Result& result : whole_.results()) to_.add_result(result.name, at_end(result.value, whole_placement()));
    return std::move(to_);
  }

 private:
  void add_argument(const Argument& argument, const ArgumentCuts& cuts) {
    auto cut = cuts.find(argument.value);
    ArgumentSpec spec = argument.spec;
    if (cut != cuts.end()) spec.cuts = cut->second;
    ValueType type = whole_.type(argument.value);
    if (!can_cut(type.shape, spec.cuts))
      user_error("[shard] expected cuts that divide '{}' of {}, got \"{}\"", argument.name, to_string(type.shape),
                 print_cuts(spec.cuts));
    type.shape = part_shape(type.shape, spec.cuts);
    Placements at = placements_of(spec.cuts, mesh_);
    given_[argument.value] = {to_.add_argument(argument.kind, argument.name, type, spec), at};
    shares_.set(argument.value, {given_[argument.value]});
  }

  // A parameter that was gathered for one phase is gathered anew for the next, in between its copy need not be kept;
  // unless it is to be gathered once. The update reads shares.
  void enter(Phase phase) {
    if (phase == phase_) return;
    phase_ = phase;
    if (gathers_once_ && phase != Phase::kUpdate) return;
    for (const auto& [argument, share] : given_)
      if (source_.is_parameter(argument)) shares_.set(argument, {share});
  }

  void visit(const Node& node) { visit(node, source_.rule_of(node)); }
  void visit(const Node& node, const ShardingRule& rule) {
    if (node.inputs.empty()) return;  // made where it is read, as much of it as is read
    if (adds_terms(node)) return visit_all_reduce(node);
    if (node.op == &op::redistribute) return visit_redistribute(node);
    if (rule.sums_inputs) return visit_sum(node);
    std::vector<Way> ways = chooser_.choose(node, rule);
    if (node.op->fusion == Fusion::kComposite)
      if (int64_t ranks = chooser_.ranks_to_gather(node, rule, ways); ranks > 1) return visit_decomposed(node, ranks);
    emit(node, rule, ways);
    if (node.op->fusion == Fusion::kView) view_all_shares(node, rule);
  }

  // A view costs nothing: whatever shares there are of its input can be had of it, too.
  void view_all_shares(const Node& node, const ShardingRule& rule) {
    const std::vector<Placed> shares = shares_.of(node.inputs[0]);
    for (const Placed& share : shares) {
      std::vector<Way> ways;
      bool can = true;
      for (size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
        FactorCut cut = cut_of(rule, rule.inputs[0], share.at[axis], mesh_.axes[axis].size);
        can &= share.at[axis] == Placement{} || (cut.factor >= 0 && can_cut_too(rule, cut, axis, ways, mesh_));
        ways.push_back({.cut = cut});
      }
      Placements at = by_axis([&](size_t axis) { return can ? output_of(rule, ways[axis], 0) : Placement{}; });
      if (can && shares_.find(node.outputs[0], at) == kNoValue) emit(node, rule, ways);
    }
  }

  // ---- Appending nodes ----

  void emit(const Node& node, const ShardingRule& rule, const std::vector<Way>& ways) {
    g_.append_like(node);
    ValueIds inputs;
    ShortList<Shape, 4> input_shapes, output_shapes;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      inputs.push_back(get(node.inputs[i], by_axis([&](size_t axis) { return input_of(rule, ways[axis], i); })));
      input_shapes.push_back(g_.shape(inputs.back()));
    }
    std::vector<Placements> at;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      at.push_back(by_axis([&](size_t axis) { return output_of(rule, ways[axis], o); }));
      output_shapes.push_back(share_of(whole_.shape(node.outputs[o]), at.back(), mesh_));
    }
    Node part = node;
    if (node.op->sharding.of_part) node.op->sharding.of_part(part.attrs, input_shapes, output_shapes);
    bool is_view =
        node.op->fusion == Fusion::kReduction && reduces_nothing(part, g_.type(inputs[0]));  // but over ranks
    ValueIds outputs = is_view ? ValueIds{reshape(g_, inputs[0], output_shapes[0])} : append(part, inputs, rule, ways);
    for (size_t o = 0; o < outputs.size(); ++o) {
      ValueType expected{whole_.type(node.outputs[o]).dtype, output_shapes[o]};
      TOKAMAK_CHECK(g_.type(outputs[o]) == expected, "[shard] a share is {} instead of {}",
                    to_string(g_.type(outputs[o])), to_string(expected));
      shares_.add(node.outputs[o], {outputs[o], at[o]});
    }
  }

  ValueIds append(const Node& part, const ValueIds& inputs, const ShardingRule& rule, const std::vector<Way>& ways) {
    g_.append_like(part);
    std::vector<PlacedCut> placed, numbered;
    for (size_t axis = 0; axis < ways.size(); ++axis) {
      FactorCut cut = ways[axis].cut;
      if (cut.factor < 0) continue;
      const Factor& factor = rule.factors[size_t(cut.factor)];
      if (!factor.placed && !factor.numbered) continue;
      const MeshAxis& along = mesh_.axes[axis];
      int64_t length = factor.size / (cut.blocks * along.size);
      (factor.placed ? placed : numbered)
          .push_back({cut.factor, cut.blocks, length, cut.mirrored, along, shares_.coordinate(axis)});
    }
    if (!placed.empty()) return part.op->sharding.place(g_, part, inputs, placed[0], numbered);
    if (!numbered.empty()) return part.op->sharding.number(g_, part, inputs, numbered);
    return g_.add(*part.op, inputs, part.attrs, part.body);
  }

  // As what it is made of, which allows more ways.
  void visit_decomposed(const Node& node, int64_t ranks) {
    auto first = whole_.nodes().size();
    source_.append().append_like(node);
    ValueIds outputs = node.op->sharding.in_parts
                           ? node.op->sharding.in_parts(source_.append(), node, node.inputs, ranks)
                           : node.op->decompose(source_.append(), node, node.inputs);
    std::vector<bool> needed(size_t(whole_.num_values()), false);
    for (size_t o = 0; o < outputs.size(); ++o) {
      ValueId output = node.outputs[o];
      needed[size_t(outputs[o])] = !source_.came(output) || source_.is_needed(output);
    }
    for (size_t n = whole_.nodes().size(); n-- > first;) {
      const Node& inner = whole_.nodes()[n];
      if (std::any_of(inner.outputs.begin(), inner.outputs.end(), [&](ValueId v) { return needed[size_t(v)]; }))
        for (ValueId input : inner.inputs) needed[size_t(input)] = true;
    }
    for (size_t n = first, end = whole_.nodes().size(); n < end; ++n) {
      Node inner = whole_.nodes()[n];
      if (std::any_of(inner.outputs.begin(), inner.outputs.end(), [&](ValueId v) { return needed[size_t(v)]; }))
        visit(inner);
    }
    for (size_t o = 0; o < outputs.size(); ++o)
      if (needed[size_t(outputs[o])]) stand_for(node.outputs[o], outputs[o]);
  }

  // Each rank sums what it has of the inputs that are cut along the same axes, and the sums are added up.
  void visit_sum(const Node& node) {
    std::map<std::vector<bool>, std::vector<size_t>> groups;  // inputs by whether each axis cuts them
    std::vector<Placed> terms;
    g_.append_like(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      terms.push_back(settled(node.inputs[i]));
      std::vector<bool> is_cut;
      for (const Placement& placement : terms.back().at) is_cut.push_back(placement.is_cut());
      groups[is_cut].push_back(i);
    }
    ValueId sum = kNoValue;
    source_.append().append_like(node);
    for (const auto& [is_cut, group] : groups) {
      ValueIds of_whole, of_share;
      for (size_t i : group) of_whole.push_back(node.inputs[i]), of_share.push_back(terms[i].value);
      ValueId value = source_.append().add1(*node.op, of_whole, node.attrs);
      Placements at = by_axis([&, &cut = is_cut](size_t axis) {
        return cut[axis] ? Placement{.kind = Placement::Kind::kSum} : Placement{};
      });
      shares_.add(value, {g_.add1(*node.op, of_share, node.attrs), at});
      if (sum != kNoValue) {
        value = add(source_.append(), sum, value);
        Node addition = whole_.nodes().back();
        visit(addition);
      }
      sum = value;
    }
    stand_for(node.outputs[0], sum);
  }

  // A sum over an axis of the mesh that the graph already asks for; over another one it is an op like others.
  bool adds_terms(const Node& node) const {
    return node.op == &op::all_reduce && mesh_.size(node.attrs.get_string("axis")) > 1;
  }

  // Its inputs are terms already: they are added where the sum should lie.
  void visit_all_reduce(const Node& node) {
    if (shares_.has(node.outputs[0])) return;  // where its input appeared
    size_t axis = mesh_.find(node.attrs.get_string("axis"));
    g_.append_like(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      for (Placed share : shares_.of(node.inputs[i])) {
        TOKAMAK_CHECK(share.at[axis] == Placement{}, "[shard] a term of a sum cannot be cut");
        share.at[axis] = {.kind = Placement::Kind::kSum, .ordered = is_ordered(node.attrs)};
        shares_.add(node.outputs[i], std::move(share));
      }
      settled(node.outputs[i]);
    }
  }

  void visit_redistribute(const Node& node) {
    g_.append_like(node);
    Placements to = redistributed(node, settled(node.inputs[0]).at);
    shares_.add(node.outputs[0], {get(node.inputs[0], to), to});
  }

  Placements redistributed(const Node& node, Placements at) const {
    const Redistribution asked = redistribution_of(node);
    const Shape& shape = whole_.shape(node.outputs[0]);
    if (asked.axes.empty()) {
      Placements wanted = chooser_.wanted(node.outputs[0]);
      return can_cut(shape, cuts_of(wanted, mesh_)) ? wanted : whole_placement();
    }
    int64_t blocks = 1;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const MeshAxis& along = mesh_.axes[axis];
      if (std::find(asked.axes.begin(), asked.axes.end(), along.name) == asked.axes.end()) continue;
      Placement before = std::exchange(at[axis], Placement::cut(asked.dim, blocks));
      if (can_cut(shape, cuts_of(at, mesh_)))
        blocks *= along.size;
      else
        at[axis] = before;
    }
    return at;
  }

  // ---- Values ----

  void stand_for(ValueId value, ValueId other) {
    if (source_.is_made_where_read(other))
      source_.make_as(value, other);
    else
      shares_.set(value, shares_.of(other));
  }
  template <typename At>
  Placements by_axis(const At& at) const {
    Placements all;
    for (size_t axis = 0; axis < mesh_.axes.size(); ++axis) all.push_back(at(axis));
    return all;
  }
  Placements whole_placement() const { return Placements(mesh_.axes.size()); }

  ValueId get(ValueId value, const Placements& to) {
    if (shares_.find(value, to) == kNoValue &&
        (source_.is_made_where_read(value) || is_a_part_of_what_is_whole(value, to)))
      make(value, to);
    return shares_.get(value, to, num_bytes(whole_.type(value)));
  }

  // Whether every rank has all of the value and some of it is asked for: then it computes that part alone, if it can
  // do so element by element.
  bool is_a_part_of_what_is_whole(ValueId value, const Placements& to) const {
    int producer = whole_.producer(value);
    if (producer < 0 || whole_.nodes()[size_t(producer)].op->fusion != Fusion::kPointwise) return false;
    const Node& node = whole_.nodes()[size_t(producer)];
    ShardingRule of_appended;
    const ShardingRule& rule = size_t(producer) < source_.rules().size() ? source_.rules()[size_t(producer)]
                                                                         : (of_appended = source_.rule_of(node));
    std::vector<Way> ways = ways_to_make(rule, to);
    for (size_t axis = 0; axis < to.size(); ++axis) {
      if (output_of(rule, ways[axis], 0) != to[axis]) return false;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (chooser_.cost_to_have(node.inputs[i], axis, input_of(rule, ways[axis], i)) != 0) return false;
    }
    return true;
  }

  std::vector<Way> ways_to_make(const ShardingRule& rule, const Placements& to) const {
    std::vector<Way> ways;
    for (size_t axis = 0; axis < to.size(); ++axis) {
      FactorCut cut = cut_of(rule, rule.outputs[0], to[axis], mesh_.axes[axis].size);
      bool can = cut.factor >= 0 && can_cut_too(rule, cut, axis, ways, mesh_);
      ways.push_back(can ? Way{.cut = cut} : Way{});
    }
    return ways;
  }

  // As much of a value as that; all of it where its rule has no such cut.
  void make(ValueId value, const Placements& to) {
    Node node = source_.made_by(value);
    node.outputs = {value};
    node.phase = g_.phase();
    ShardingRule rule = source_.rule_of(node);
    emit(node, rule, ways_to_make(rule, to));
    if (node.op == &op::constant && node.attrs.get_double("value") == 0) add_as_terms(value, to);
  }

  // Zeros that were made are terms of zeros, too.
  void add_as_terms(ValueId value, const Placements& to) {
    Placed zeros = shares_.of(value).back();
    for (size_t axis = 0; axis < to.size(); ++axis)
      if (to[axis].is_term()) zeros.at[axis] = to[axis];
    shares_.add(value, std::move(zeros));
  }

  // A share that is no term of a sum or a maximum: the smallest there is, or else one that is made as is wanted.
  Placed settled(ValueId value) {
    if (source_.is_made_where_read(value)) return {get(value, whole_placement()), whole_placement()};
    const Placed* best = nullptr;
    for (const Placed& share : shares_.of(value)) {
      bool has_terms = std::any_of(share.at.begin(), share.at.end(), [](const Placement& p) { return p.is_term(); });
      if (!has_terms && (!best || num_elements(g_.shape(share.value)) < num_elements(g_.shape(best->value))))
        best = &share;
    }
    if (best) return *best;
    const Placements at = shares_.of(value)[0].at, want = chooser_.wanted(value);
    Placements to = at;
    for (Placement& placement : to)
      if (placement.is_term()) placement = {};
    for (size_t axis = 0; axis < to.size(); ++axis) {
      // Of an argument's terms no more is added up than is wanted.
      bool may_take = at[axis].is_term() || (at[axis] == Placement{} && whole_.argument_of(value));
      if (!may_take) continue;
      to[axis] = want[axis];
      if (!can_cut(whole_.shape(value), cuts_of(to, mesh_))) to[axis] = {};
    }
    return {get(value, to), to};
  }

  // Gradients are put together where they appear, so that this can go on beside the rest of the backward pass.
  void settle_gradients(const Node& node) {
    if (node.phase == Phase::kUpdate) return settle_padded(node);
    for (ValueId output : node.outputs) {
      std::span<const int> users = source_.users(output);
      for (int user : users)
        if (Node sum = whole_.nodes()[size_t(user)]; adds_terms(sum) && sum.inputs.size() == 1) visit_all_reduce(sum);
      bool is_gradient = std::any_of(users.begin(), users.end(),
                                     [&](int user) { return whole_.nodes()[size_t(user)].phase == Phase::kUpdate; });
      if (!is_gradient) continue;
      g_.append_like(node);
      settled(output);
    }
  }

  // A copy of a sum that has rows added is needed no longer than until it is put together.
  void settle_padded(const Node& node) {
    if (node.op != &op::pad || !whole_.argument_of(node.inputs[0])) return;
    g_.append_like(node);
    settled(node.outputs[0]);
  }

  ValueId at_end(ValueId value, const Placements& to) {
    if (int producer = whole_.producer(value); producer >= 0) g_.append_like(whole_.nodes()[size_t(producer)]);
    return get(value, to);
  }

  const Mesh& mesh_;
  WholeGraph source_;
  const Graph& whole_ = source_.graph();
  Graph to_;
  GraphBuilder g_;
  Shares shares_;
  WantedPlacements wanted_;
  WayChooser chooser_;
  bool gathers_once_;
  std::map<ValueId, Placed> given_;  // by argument
  Phase phase_ = Phase::kForward;
};

}  // namespace

Graph shard_graph(const Graph& graph, const Mesh& mesh, const ArgumentCuts& cuts, const SumCuts& sums, bool ordered,
                  bool gathers_once) {
  Mesh used;
  for (const MeshAxis& axis : mesh.axes)
    if (axis.size > 1) used.axes.push_back(axis);
  return Sharder(graph, used, cuts, sums, ordered, gathers_once).run();
}

bool shard(Graph& graph, const PassContext& context) {
  graph = with_sums_trimmed(with_rows_where_read(graph), context);
  ArgumentCuts cuts = seed_cuts(graph, context);
  SumCuts sums = context.sequence ? seed_residual(graph, context.mesh, context.own_inputs) : SumCuts{};
  graph = shard_graph(graph, context.mesh, cuts, sums, context.slots > 1, context.gathers_once);
  eliminate_common_subexpressions(graph, context);  // what says where parts are
  eliminate_dead_code(graph, context);              // wholes of which no rank needs more than a part
  return true;
}

}  // namespace tokamak
