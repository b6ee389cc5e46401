#include "passes/hoist_weights.h"

#include "base/error.h"
#include "graph/op_def.h"
#include "ops/collective.h"
#include "ops/float8_weights.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "passes/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tokamak {
namespace {

// Copies in a low type put side by side (passes/join_products.h) are one copy.
bool is_joined_copy(const Graph& graph, const Node& node) {
  return node.op == &op::concat && node.attrs.get_int("dim") == 0 && dtype_bytes(graph.dtype(node.outputs[0])) == 2;
}

bool is_move(const Graph& graph, const Node& node) {
  return node.op == &op::all_gather || node.op == &op::cast || is_joined_copy(graph, node);
}

bool is_float8_value(const Graph& graph, const Node& node) { return is_float8(graph.dtype(node.outputs[0])); }

// To leave it would only make what is read larger: who reads it makes it.
bool widens(const Graph& graph, const Node& node) {
  return node.op == &op::cast && dtype_bytes(graph.dtype(node.outputs[0])) > dtype_bytes(graph.dtype(node.inputs[0]));
}

// By node, which of them are taken.
class Choice {
 public:
  Choice(const Graph& graph, const PassContext& context)
      : graph_(graph), users_(graph), taken_(graph.nodes().size(), false) {
    if (context.zero == 3) return;
    find_of_parameters();
    if (context.options.memory_budget_gib > 0) leave_casts();
    leave_what_widens();
  }

  bool takes(size_t node) const { return taken_[node]; }

  // Whether programs that run several times read a value which is made here.
  bool leaves(size_t node, ValueId output) const {
    return taken_[node] && !made_twice_[node] && is_read_outside(output);
  }

 private:
  bool is_read_outside(ValueId value) const {
    return std::ranges::any_of(users_[size_t(value)],
                               [&](int user) { return !taken_[size_t(user)] || made_twice_[size_t(user)]; });
  }
  template <typename Is>
  bool all_readers(const Node& node, Is is) const {
    std::span<const int> readers = users_[size_t(node.outputs[0])];
    return !readers.empty() && std::ranges::all_of(readers, is);
  }

  // Gathers and casts before the update, of nothing but parameters and what is made of them so; and all that leads to
  // eight bits of them: the scale and the cast would cost each run as much as the products save.
  void find_of_parameters() {
    // Of parameters and constants, but not of constants alone.
    std::vector<bool> values(size_t(graph_.num_values()), false), constants = values, made;
    for (const Argument& argument : graph_.arguments())
      values[size_t(argument.value)] = argument.kind == Argument::Kind::kParameter;
    std::vector<bool> moved = values;  // parameters, and what gathers and casts alone make of them
    for (const Node& node : graph_.nodes()) {
      bool may = node.phase != Phase::kUpdate && (is_move(graph_, node) || (!node.op->together && !node.body));
      auto is_constant = [&](ValueId input) { return bool(constants[size_t(input)]); };
      auto is_known = [&](ValueId input) { return values[size_t(input)] || constants[size_t(input)]; };
      bool known = may && std::ranges::all_of(node.inputs, is_known);
      bool constant = known && std::ranges::all_of(node.inputs, is_constant);
      made.push_back(known && !constant);
      taken_[made.size() - 1] =
          made.back() && is_move(graph_, node) &&
          std::ranges::all_of(node.inputs, [&](ValueId input) { return bool(moved[size_t(input)]); });
      for (ValueId output : node.outputs) {
        values[size_t(output)] = made.back(), constants[size_t(output)] = constant;
        moved[size_t(output)] = taken_[made.size() - 1];
      }
    }
    in_eight_bits_.assign(made.size(), false);
    for (size_t n = made.size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (!made[n]) continue;
      in_eight_bits_[n] =
          is_float8_value(graph_, node) ||
          std::ranges::any_of(users_[size_t(node.outputs[0])], [&](int n) { return in_eight_bits_[size_t(n)]; });
      if (in_eight_bits_[n]) taken_[n] = true;
    }
  }

  // Those that something other than such an all_gather reads.
  void leave_casts() {
    for (size_t n = taken_.size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (!taken_[n] || in_eight_bits_[n] || node.op == &op::all_gather) continue;
      taken_[n] = all_readers(node, [&](int user) { return taken_[size_t(user)]; });
    }
  }

  // What widens is only made here for others that are.
  void leave_what_widens() {
    made_twice_.assign(taken_.size(), false);
    for (size_t n = taken_.size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      if (!taken_[n] || !widens(graph_, node)) continue;
      taken_[n] = in_eight_bits_[n];
      made_twice_[n] = taken_[n] && is_read_outside(node.outputs[0]);
    }
  }

  const Graph& graph_;
  Users users_;
  std::vector<bool> taken_, in_eight_bits_, made_twice_;
};

// What a value is made of, the first where it is several that are no constants. Each output of a node is made of the
// input in its place.
ValueId source_of(const Graph& graph, ValueId value) {
  const Node& node = graph.nodes()[size_t(graph.producer(value))];
  if (node.op == &op::float8_weights) return node.inputs[weight_of_output(node, value)];
  if (node.outputs.size() > 1)
    return node.inputs[size_t(std::ranges::find(node.outputs, value) - node.outputs.begin())];
  auto is_constant = [&](ValueId input) {
    int maker = graph.producer(input);
    return maker >= 0 && graph.nodes()[size_t(maker)].inputs.empty();
  };
  return *std::ranges::find_if_not(node.inputs, is_constant);
}

// What an output of float8_weights is of its weight.
std::string_view float8_name(const Node& node, ValueId value) {
  const Float8Weight weight = float8_outputs(node)[weight_of_output(node, value)];
  if (value == weight.plain) return "f8e4m3";
  if (value == weight.turned) return "f8e4m3.transpose";
  return value == weight.scale ? "scale" : "longest";
}

// "h.0.mlp.c_fc.weight.cast.all_gather": the parameter, and what is done to it; of several side by side all of them,
// "h.0.q.weight.cast+h.0.k.weight.cast.concat"; of what leads to eight bits what it is for.
std::string name_of(const Graph& graph, ValueId value) {
  if (const Argument* argument = graph.argument_of(value)) return argument->name;
  const Node& node = graph.nodes()[size_t(graph.producer(value))];
  if (is_joined_copy(graph, node)) {
    std::string names;
    for (ValueId input : node.inputs) names += (names.empty() ? "" : "+") + name_of(graph, input);
    return fmt::format("{}.{}", names, node.op->name);
  }
  ValueId source = source_of(graph, value);
  if (is_move(graph, node) && !is_float8_value(graph, node))
    return fmt::format("{}.{}", name_of(graph, source), node.op->name);
  bool is_float8_weight = node.op == &op::float8_weights;
  if (node.op != &op::cast && !is_float8_weight && num_elements(graph.shape(value)) > 1)
    return fmt::format("{}.{}", name_of(graph, source), node.op->name);
  while (!graph.argument_of(source)) source = source_of(graph, source);
  std::string_view what = is_float8_weight       ? float8_name(node, value)
                          : node.op == &op::cast ? dtype_name(graph.dtype(value))
                                                 : "scale";
  return fmt::format("{}.{}", graph.argument_of(source)->name, what);
}

// As of nodes that the backward pass does again (passes/choose_recompute.h).
bool are_alike(const Graph& graph, ValueId a, ValueId b) {
  if (a == b) return true;
  int made = graph.producer(a), other = graph.producer(b);
  if (made < 0 || other < 0) return false;
  const Node &x = graph.nodes()[size_t(made)], &y = graph.nodes()[size_t(other)];
  auto place = [](const Node& node, ValueId value) {
    return std::ranges::find(node.outputs, value) - node.outputs.begin();
  };
  return x.op == y.op && x.attrs == y.attrs && place(x, a) == place(y, b) &&
         std::ranges::equal(x.inputs, y.inputs, [&](ValueId i, ValueId j) { return are_alike(graph, i, j); });
}

}  // namespace

HoistedWeights hoist_weights(const Graph& graph, const PassContext& context, const std::string& suffix) {
  Choice choice(graph, context);
  Part weights{"weights" + suffix}, rest{graph.name(), graph.results(), graph.updates()};
  std::map<std::string, ValueId> named;  // what is made twice is left once
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (ValueId output : graph.nodes()[n].outputs) {
      if (!choice.leaves(n, output)) continue;
      const ValueType& type = graph.type(output);
      StandIn state{
          fmt::format("weights{}.{}", suffix, name_of(graph, output)), type, {Role::kWeights, "", type.shape}};
      auto [first, is_new] = named.try_emplace(state.name, output);
      TOKAMAK_CHECK(are_alike(graph, first->second, output), "two values are left as '{}'", state.name);
      if (is_new) weights.left.emplace_back(output, state);
      rest.given[output] = state;
    }
  return {extract(graph, rest), extract(graph, weights)};
}

}  // namespace tokamak
