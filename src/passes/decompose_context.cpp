#include "passes/decompose_context.h"

#include "graph/rewriter.h"
#include "ops/context_attention_parts.h"

namespace tokamak {

bool decompose_context(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (const Node& node : graph.nodes()) {
    if (!has_parts(node) || context.kernels->has_kernel(graph, node)) {
      rewriter.copy(node);
      continue;
    }
    rewriter.replace(node.outputs,
                     context_attention_in_parts(rewriter.in_place_of(node), node, rewriter.map(node.inputs)));
    changed = true;
  }
  if (changed) graph = rewriter.finish();
  return changed;
}

}  // namespace tokamak
