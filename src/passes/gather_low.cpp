#include "passes/gather_low.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/pointwise.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tokamak {
namespace {

// The one low type to which all that reads the value casts it.
std::optional<DType> low_type(const Graph& graph, std::span<const int> users) {
  std::optional<DType> low;
  for (int user : users) {
    const Node& node = graph.nodes()[size_t(user)];
    if (node.op != &op::cast) return {};
    DType to = graph.dtype(node.outputs[0]);
    if (dtype_bytes(to) != 2 || (low && *low != to)) return {};
    low = to;
  }
  return low;
}

// One gather after another (over data, then context) is turned round from the last to the first.
bool turn_round(Graph& graph) {
  Users users(graph);
  std::vector<bool> escaping = find_escaping(graph);
  std::map<ValueId, ValueId> gathered;  // low copy of an old value, in the new graph
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op == &op::cast && gathered.count(node.inputs[0])) {
      rewriter.replace(node.outputs[0], gathered.at(node.inputs[0]));
      continue;
    }
    bool is_gather = node.op == &op::all_gather && graph.dtype(node.outputs[0]) == DType::kF32;
    std::optional<DType> low;
    if (is_gather && !escaping[size_t(node.outputs[0])]) low = low_type(graph, users[size_t(node.outputs[0])]);
    if (!low) {
      rewriter.copy(node);
      continue;
    }
    GraphBuilder& g = rewriter.in_place_of(node);
    gathered[node.outputs[0]] = g.add1(op::all_gather, {cast(g, rewriter.map(node.inputs[0]), *low)}, node.attrs);
  }
  if (gathered.empty()) return false;
  graph = rewriter.finish();
  return true;
}

}  // namespace

bool gather_low(Graph& graph, const PassContext&) {
  bool changed = false;
  while (turn_round(graph)) changed = true;
  return changed;
}

}  // namespace tokamak
