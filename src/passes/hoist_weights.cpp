#include "passes/hoist_weights.h"

#include "graph/op_def.h"
#include "ops/collective.h"
#include "ops/pointwise.h"
#include "passes/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tokamak {
namespace {

// By node: whether it is an all_gather or a cast before the update, of nothing but parameters and what is made of them
// so.
std::vector<bool> find_of_parameters(const Graph& graph) {
  std::vector<bool> values(size_t(graph.num_values()), false), nodes;
  for (const Argument& argument : graph.arguments())
    values[size_t(argument.value)] = argument.kind == Argument::Kind::kParameter;
  for (const Node& node : graph.nodes()) {
    bool moves = (node.op == &op::all_gather || node.op == &op::cast) && node.phase != Phase::kUpdate;
    nodes.push_back(moves && std::all_of(node.inputs.begin(), node.inputs.end(),
                                         [&](ValueId input) { return values[size_t(input)]; }));
    for (ValueId output : node.outputs) values[size_t(output)] = nodes.back();
  }
  return nodes;
}

// Leaves out casts that something other than such an all_gather reads.
void leave_casts(const Graph& graph, const Users& users, std::vector<bool>& taken) {
  for (size_t n = taken.size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (!taken[n] || node.op == &op::all_gather) continue;
    std::span<const int> readers = users[size_t(node.outputs[0])];
    taken[n] =
        !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int user) { return taken[size_t(user)]; });
  }
}

// "h.0.mlp.c_fc.weight.cast.all_gather": the parameter, and what is done to it. Each output of a node is made of the
// input in its place.
std::string name_of(const Graph& graph, ValueId value) {
  if (const Argument* argument = graph.argument_of(value)) return argument->name;
  const Node& node = graph.nodes()[size_t(graph.producer(value))];
  auto place = std::find(node.outputs.begin(), node.outputs.end(), value) - node.outputs.begin();
  return fmt::format("{}.{}", name_of(graph, node.inputs[size_t(place)]), node.op->name);
}

}  // namespace

HoistedWeights hoist_weights(const Graph& graph, const PassContext& context, const std::string& suffix) {
  std::vector<bool> taken(graph.nodes().size(), false);
  Users users(graph);
  if (context.zero < 3) taken = find_of_parameters(graph);
  if (context.options.memory_budget_gib > 0) leave_casts(graph, users, taken);
  Part weights{"weights" + suffix}, rest{graph.name(), graph.results(), graph.updates()};
  std::set<std::string> names;  // what is made twice is left once
  for (size_t n = 0; n < taken.size(); ++n) {
    if (!taken[n]) continue;
    for (ValueId output : graph.nodes()[n].outputs) {
      std::span<const int> readers = users[size_t(output)];
      if (std::all_of(readers.begin(), readers.end(), [&](int user) { return taken[size_t(user)]; })) continue;
      const ValueType& type = graph.type(output);
      std::string name = fmt::format("weights{}.{}", suffix, name_of(graph, output));
      StandIn state{std::move(name), type, {Role::kWeights, "", type.shape}};
      if (names.insert(state.name).second) weights.left.emplace_back(output, state);
      rest.given[output] = state;
    }
  }
  return {extract(graph, rest), extract(graph, weights)};
}

}  // namespace tokamak
