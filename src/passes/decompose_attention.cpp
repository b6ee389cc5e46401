#include "passes/decompose_attention.h"

#include "graph/rewriter.h"
#include "ops/attention.h"

namespace tokamak {

bool decompose_attention(Graph& graph, const PassContext&) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (const Node& node : graph.nodes()) {
    if (node.op != &op::attention || node.keep_whole) {
      rewriter.copy(node);
      continue;
    }
    rewriter.replace(node.outputs, node.op->decompose(rewriter.in_place_of(node), node, rewriter.map(node.inputs)));
    changed = true;
  }
  if (changed) graph = rewriter.finish();
  return changed;
}

}  // namespace tokamak
