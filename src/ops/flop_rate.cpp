#include "ops/flop_rate.h"

#include "graph/op_def.h"
#include "ops/attention.h"
#include "ops/attention_decode.h"
#include "ops/context_attention.h"

namespace tokamak {

double flop_rate(const Graph& graph, const Node& node, const Target& target) {
  for (const OpDef* attention : {&op::attention, &op::attention_grad, &op::attention_decode, &op::context_attention,
                                 &op::context_attention_grad})
    if (node.op == attention) return target.attention_flops;
  if (node.op->autocast != Autocast::kLow) return target.pointwise_flops;
  if (dtype_bytes(graph.dtype(node.inputs[0])) == 2) return target.bf16_flops;
  return node.attrs.get_bool("tf32", false) && target.tf32_flops > 0 ? target.tf32_flops : target.f32_flops;
}

double matmul_rate(const Target& target, Precision precision) {
  if (is_low(precision)) return target.bf16_flops;
  return precision == Precision::kTf32 && target.tf32_flops > 0 ? target.tf32_flops : target.f32_flops;
}

}  // namespace tokamak
