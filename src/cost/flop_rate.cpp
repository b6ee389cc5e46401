#include "cost/flop_rate.h"

#include "graph/op_def.h"
#include "ops/attention.h"
#include "ops/attention_decode.h"
#include "ops/classifier.h"
#include "ops/context_attention.h"
#include "ops/matmul.h"
#include "ops/matmul_formats.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

// What attention's kernels reach of the rate of products of f32, where those are what they multiply
// (bench/cpu_attention.cpp).
constexpr double kF32Share = 0.65;

bool is_attention(const Node& node) {
  for (const OpDef* attention : {&op::attention, &op::attention_grad, &op::attention_decode, &op::context_attention,
                                 &op::context_attention_grad})
    if (node.op == attention) return true;
  return false;
}

// Positions of a sequence of which each sees those before it alone, or as many of them as a window has; infinite: there
// is no such mask.
double causal_length(const Graph& graph, const Node& node) {
  double length = std::numeric_limits<double>::infinity();
  if (node.op == &op::context_attention || node.op == &op::context_attention_grad)
    length = double(zigzag_of(spec_of(graph, node)).positions());
  else if (node.op != &op::attention_decode && node.attrs.get_bool("causal"))
    length = double(graph.shape(node.inputs[0])[1]);
  int64_t window = node.op == &op::attention_decode ? 0 : attention_window(node.attrs);
  return window > 0 ? std::min(length, double(window)) : length;
}

}  // namespace

double attention_rate(const Target& target, double causal_length) {
  return target.attention_flops / (1 + target.attention_tile / causal_length);
}

double flop_rate(const Graph& graph, const Node& node, const Target& target) {
  if (is_attention(node)) {
    double rate = attention_rate(target, causal_length(graph, node));
    return graph.dtype(node.inputs[0]) == DType::kF32 ? std::min(rate, kF32Share * target.f32_flops) : rate;
  }
  if (node.op->autocast != Autocast::kLow) return target.pointwise_flops;
  double rate = product_rate(target, operand_format(graph, node, 0));
  if (node.op == &op::classifier && node.inputs.size() > 4) {  // of its three products, that of the logits, or all
    int own = node.inputs.size() > 8 ? 3 : 1;
    return 3 / ((3 - own) / rate + own / product_rate(target, operand_format(graph, node, 4)));
  }
  return node.op == &op::matmul ? std::min(rate, product_rate(target, operand_format(graph, node, 1))) : rate;
}

double draw_seconds(const Cost& cost, const Target& target) {
  return target.draw_rate > 0 ? cost.draws / target.draw_rate : 0;
}

double matmul_rate(const Target& target, Precision precision) { return product_rate(target, format_of(precision)); }

}  // namespace tokamak
