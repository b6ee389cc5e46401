#include "passes/decompose_attention.h"

#include "graph/rewriter.h"
#include "ops/attention.h"

namespace tokamak {

bool decompose_attention(Graph& graph, const PassContext&) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (const Node& node : graph.nodes()) {
    if (node.op != &op::attention || node.has_tag("flash")) {
      rewriter.copy(node);
      continue;
    }
    rewriter.builder().set_tags(node.tags);
    rewriter.replace(node.outputs, node.op->decompose(rewriter.builder(), node, rewriter.map(node.inputs)));
    rewriter.builder().set_tags({});
    changed = true;
  }
  if (changed) graph = rewriter.finish();
  return changed;
}

}  // namespace tokamak
