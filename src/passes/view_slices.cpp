#include "passes/view_slices.h"

#include "graph/rewriter.h"
#include "ops/movement.h"

#include <algorithm>

namespace tokamak {
namespace {

bool may_view(const Graph& graph, const Node& node) {
  return node.op == &op::slice && may_view_slice(spec_of(graph, node));
}

// By value, the bytes of its slices that may be views.
std::vector<int64_t> viewed_bytes(const Graph& graph) {
  std::vector<int64_t> bytes(size_t(graph.num_values()), 0);
  for (const Node& node : graph.nodes())
    if (may_view(graph, node)) bytes[size_t(node.inputs[0])] += num_bytes(graph.type(node.outputs[0]));
  return bytes;
}

}  // namespace

bool view_slices(Graph& graph, const PassContext&) {
  const std::vector<int64_t> viewed = viewed_bytes(graph);
  auto becomes_view = [&](const Node& node) {
    if (!may_view(graph, node)) return false;
    ValueId of = node.inputs[0];
    return graph.argument_of(of) || viewed[size_t(of)] >= num_bytes(graph.type(of));
  };
  const auto& nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), becomes_view)) return false;
  Rewriter rewriter(graph);
  for (const Node& node : nodes) {
    if (becomes_view(node))
      rewriter.replace(node.outputs,
                       rewriter.in_place_of(node).add(op::slice_view, rewriter.map(node.inputs), node.attrs));
    else
      rewriter.copy(node);
  }
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
