#include "passes/tf32.h"

#include "graph/op_def.h"

namespace tokamak {

bool tf32(Graph& graph, const PassContext& context) {
  if (context.target.tf32_flops <= 0) return false;
  bool changed = false;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    bool eligible = node.op->autocast == Autocast::kLow && graph.dtype(node.inputs[0]) == DType::kF32;
    if (!eligible || node.has_tag("tf32")) continue;
    graph.add_tag(n, "tf32");
    changed = true;
  }
  return changed;
}

}  // namespace tokamak
