#include "passes/merge_casts.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/movement.h"
#include "ops/multi_cast.h"
#include "ops/pointwise.h"
#include "passes/merge_float8.h"
#include "passes/weight_copies.h"

#include <algorithm>
#include <map>
#include <set>

namespace tokamak {
namespace {

bool is_concat_of_rows(const Node& node) { return node.op == &op::concat && node.attrs.get_int("dim") == 0; }

class CastMerger {
 public:
  explicit CastMerger(const Graph& graph)
      : graph_(graph), users_(find_users(graph)), escaping_(find_escaping(graph)),
        for_float8_(find_copies_for_float8(graph)), has_backward_(has_backward(graph)), rewriter_(graph) {
    for (const Update& update : graph.updates()) keep(update.value);
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      if (is_join(graph.nodes()[n]))
        for (ValueId cast : graph.nodes()[n].inputs) join_of_[cast] = int(n);
    for (const Node& node : graph.nodes())
      if (cast_parameter(node) != kNoValue && (family_of(node).second >= 0 || lives_for_step(node))) add(node);
    std::erase_if(families_, [](const auto& family) { return family.second.num_parameters() < 2; });
  }

  bool any() const { return !families_.empty(); }

  Graph rewrite() {
    for (const Node& node : graph_.nodes()) {
      auto found = places_.find(node.outputs[0]);
      auto family = found == places_.end() ? families_.end() : families_.find(found->second.family);
      if (family == families_.end()) {
        rewriter_.copy(node);
        continue;
      }
      if (family->second.made.empty()) make(node, family->first.first, family->second);
      bool is_part = join_of_.contains(node.outputs[0]);  // nothing but the join reads it
      if (!is_part) replace(node, family->second.made[found->second.copy]);
    }
    return rewriter_.finish();
  }

 private:
  // Casts that become one: to this type, for this all_gather or concat alone (-1: for the whole step).
  using Family = std::pair<DType, int>;
  // One output: copies of these parameters, side by side in these shapes where there are several.
  struct Copy {
    ValueIds parameters;
    std::vector<Shape> shapes;
  };
  struct Copies {
    std::vector<Copy> all;  // in order, of a parameter alone once
    ValueIds made;          // in the new graph

    size_t num_parameters() const {
      size_t sum = 0;
      for (const Copy& copy : all) sum += copy.parameters.size();
      return sum;
    }
  };
  struct Place {
    Family family;
    size_t copy;
  };

  const Node& maker(ValueId value) const { return graph_.nodes()[size_t(graph_.producer(value))]; }

  void keep(ValueId value) {
    kept_.insert(value);
    if (graph_.producer(value) >= 0 && is_concat_of_rows(maker(value)))
      kept_.insert(maker(value).inputs.begin(), maker(value).inputs.end());
  }

  Family family_of(const Node& cast) const {
    DType to = graph_.dtype(cast.outputs[0]);
    std::span<const int> users = users_[size_t(cast.outputs[0])];
    if (users.size() == 1 && graph_.nodes()[size_t(users[0])].op == &op::all_gather) return {to, users[0]};
    auto join = join_of_.find(cast.outputs[0]);
    if (join == join_of_.end()) return {to, -1};
    const ValueIds& parts = graph_.nodes()[size_t(join->second)].inputs;
    bool for_step = std::ranges::all_of(parts, [&](ValueId part) { return lives_for_step(maker(part)); });
    return {to, for_step ? -1 : join->second};
  }

  // Whether the cast's result lives so long anyway.
  bool lives_for_step(const Node& cast) const {
    return kept_.contains(cast.outputs[0]) || (has_backward_ && cast.phase != Phase::kBackward && !cast.recompute);
  }

  // The parameter that the node casts to a low type, or kNoValue.
  ValueId cast_parameter(const Node& node) const {
    if (node.op != &op::cast || for_float8_[size_t(node.outputs[0])]) return kNoValue;
    DType to = graph_.dtype(node.outputs[0]);
    if (to != DType::kBF16 && to != DType::kF16) return kNoValue;
    ValueId source = behind_views(graph_, node.inputs[0]);
    return is_parameter(graph_, source) && is_float(graph_.dtype(source)) ? source : kNoValue;
  }

  // Whether the node puts side by side casts that nothing else reads.
  bool is_join(const Node& node) const {
    return is_concat_of_rows(node) && std::ranges::all_of(node.inputs, [&](ValueId value) {
             return graph_.producer(value) >= 0 && users_[size_t(value)].size() == 1 && !escaping_[size_t(value)] &&
                    cast_parameter(maker(value)) != kNoValue;
           });
  }

  void add(const Node& cast) {
    ValueId parameter = cast_parameter(cast);
    Family family = family_of(cast);
    std::vector<Copy>& all = families_[family].all;
    auto join = join_of_.find(cast.outputs[0]);
    if (join == join_of_.end()) {
      auto is_there = [&](const Copy& copy) { return copy.parameters == ValueIds{parameter}; };
      auto at = size_t(std::ranges::find_if(all, is_there) - all.begin());
      if (at == all.size()) all.push_back({{parameter}, {graph_.shape(parameter)}});
      places_[cast.outputs[0]] = {family, at};
      return;
    }
    const Node& joined = graph_.nodes()[size_t(join->second)];
    auto [place, is_new] = places_.try_emplace(joined.outputs[0], Place{family, all.size()});
    places_[cast.outputs[0]] = place->second;
    if (!is_new) return;
    Copy& copy = all.emplace_back();
    for (ValueId part : joined.inputs) {
      copy.parameters.push_back(cast_parameter(maker(part)));
      copy.shapes.push_back(graph_.shape(part));
    }
  }

  // All of a family, where the first cast of it stood.
  void make(const Node& first, DType to, Copies& copies) {
    GraphBuilder& g = rewriter_.in_place_of(first);
    ValueIds values;
    std::vector<int64_t> joins;
    for (const Copy& copy : copies.all) {
      for (size_t i = 0; i < copy.parameters.size(); ++i)
        values.push_back(reshape(g, rewriter_.map(copy.parameters[i]), copy.shapes[i]));
      joins.push_back(int64_t(copy.parameters.size()));
    }
    copies.made = multi_cast(g, std::move(values), to, std::move(joins));
  }

  // By the copy in the shape that the node's output had.
  void replace(const Node& node, ValueId copy) {
    ValueId output = node.outputs[0];
    rewriter_.replace(output, reshape(rewriter_.in_place_of(node), copy, graph_.shape(output)));
  }

  const Graph& graph_;
  Users users_;
  std::vector<bool> escaping_;
  std::vector<bool> for_float8_;  // by value: merge_float8 does without it
  std::set<ValueId> kept_;        // in states, alone or side by side
  bool has_backward_;
  Rewriter rewriter_;
  std::map<ValueId, int> join_of_;  // nodes by the casts that they put side by side
  std::map<Family, Copies> families_;
  std::map<ValueId, Place> places_;  // by casts, and by what puts them side by side
};

}  // namespace

bool merge_casts(Graph& graph, const PassContext&) {
  CastMerger merger(graph);
  if (!merger.any()) return false;
  graph = merger.rewrite();
  return true;
}

}  // namespace tokamak
