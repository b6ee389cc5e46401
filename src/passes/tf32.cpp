#include "passes/tf32.h"

#include "graph/rewriter.h"

namespace tokamak {

bool tf32(Graph& graph, const PassContext& context) {
  if (context.target.tf32_flops <= 0) return false;
  return change_nodes(graph, [&](Node& node) {
    bool eligible = node.op->autocast == Autocast::kLow && graph.dtype(node.inputs[0]) == DType::kF32;
    if (!eligible || node.attrs.find("tf32")) return false;
    node.attrs.set("tf32", true);
    return true;
  });
}

}  // namespace tokamak
