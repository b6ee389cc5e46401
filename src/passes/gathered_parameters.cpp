#include "passes/gathered_parameters.h"

#include "graph/op_def.h"
#include "ops/collective.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {

std::vector<std::optional<int>> count_gathers(const Graph& graph) {
  std::vector<std::optional<int>> gathers(size_t(graph.num_values()));
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) gathers[size_t(argument.value)] = 0;
  for (const Node& node : graph.nodes()) {
    bool is_gather = node.op == &op::all_gather;
    if (node.phase == Phase::kUpdate || node.inputs.size() != 1 || !(is_gather || node.op == &op::cast)) continue;
    if (std::optional<int> before = gathers[size_t(node.inputs[0])])
      gathers[size_t(node.outputs[0])] = *before + is_gather;
  }
  return gathers;
}

std::vector<bool> find_gathering(const Graph& graph) {
  std::vector<std::optional<int>> gathers = count_gathers(graph);
  Users users(graph);
  std::vector<bool> escaping = find_escaping(graph), gathering(graph.nodes().size(), false);
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (node.outputs.size() != 1 || !gathers[size_t(node.outputs[0])]) continue;
    std::span<const int> readers = users[size_t(node.outputs[0])];
    bool feeds_one = !readers.empty() && !escaping[size_t(node.outputs[0])] &&
                     std::all_of(readers.begin(), readers.end(), [&](int reader) { return gathering[size_t(reader)]; });
    gathering[n] = node.op == &op::all_gather || feeds_one;
  }
  return gathering;
}

}  // namespace tokamak
