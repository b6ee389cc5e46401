#include "ops/flop_rate.h"

#include "graph/op_def.h"
#include "ops/attention.h"
#include "ops/attention_decode.h"
#include "ops/context_attention.h"

#include <limits>

namespace tokamak {
namespace {

bool is_attention(const Node& node) {
  for (const OpDef* attention : {&op::attention, &op::attention_grad, &op::attention_decode, &op::context_attention,
                                 &op::context_attention_grad})
    if (node.op == attention) return true;
  return false;
}

// Positions of a sequence of which each sees those before it alone; infinite: there is no such mask.
double causal_length(const Graph& graph, const Node& node) {
  if (node.op == &op::context_attention || node.op == &op::context_attention_grad)
    return double(zigzag_of(spec_of(graph, node)).positions());
  bool causal = node.op != &op::attention_decode && node.attrs.get_bool("causal");
  return causal ? double(graph.shape(node.inputs[0])[1]) : std::numeric_limits<double>::infinity();
}

}  // namespace

double attention_rate(const Target& target, double causal_length) {
  return target.attention_flops / (1 + target.attention_tile / causal_length);
}

double flop_rate(const Graph& graph, const Node& node, const Target& target) {
  if (is_attention(node)) return attention_rate(target, causal_length(graph, node));
  if (node.op->autocast != Autocast::kLow) return target.pointwise_flops;
  if (dtype_bytes(graph.dtype(node.inputs[0])) == 2) return target.bf16_flops;
  return node.attrs.get_bool("tf32", false) && target.tf32_flops > 0 ? target.tf32_flops : target.f32_flops;
}

double draw_seconds(const Cost& cost, const Target& target) {
  return target.draw_rate > 0 ? cost.draws / target.draw_rate : 0;
}

double matmul_rate(const Target& target, Precision precision) {
  if (is_low(precision)) return target.bf16_flops;
  return precision == Precision::kTf32 && target.tf32_flops > 0 ? target.tf32_flops : target.f32_flops;
}

}  // namespace tokamak
