#include "ops/flop_rate.h"

#include "ops/ops.h"

namespace tokamak {

double flop_rate(const Graph& graph, const Node& node, const Target& target) {
  if (node.op == &op::attention || node.op == &op::attention_grad || node.op == &op::attention_decode)
    return target.attention_flops;
  if (node.op->autocast != Autocast::kLow) return target.pointwise_flops;
  return dtype_bytes(graph.dtype(node.inputs[0])) == 2 ? target.bf16_flops : target.f32_flops;
}

}  // namespace tokamak
