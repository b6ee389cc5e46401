// adamw8bit: AdamW's update (ops/adamw.cpp) of one tensor whose moments are kept in 8 bits (Dettmers et al., "8-bit
// optimizers via block-wise quantization", 2022). Of each block of a row there are codes (ops/dynamic_map.h) and what
// their numbers are multiplied by, the largest size in the block; the arithmetic is in f32, and the parameter moves by
// moments that are not yet rounded.
// adamw8bit(param, grad, m, m_scale, v, v_scale, lr, scale, step) -> param, m, m_scale, v, v_scale
// A scale of 0 leaves everything as it was.

#include "ops/adamw8bit.h"

#include "base/divide.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/dynamic_map.h"
#include "ops/sharding_rules.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr int64_t kMostInBlock = 256;
constexpr AttrDef kAttrs[] = {{"beta1"}, {"beta2"}, {"decay"}, {"eps"}};

ValueTypes infer(const NodeSpec& spec) {
  const ValueType &param = spec.inputs[0], &grad = spec.inputs[1];
  if (param.dtype != DType::kF32 || param.shape.empty())
    user_error("[adamw8bit] expected param in f32 with at least one dim, got {}", to_string(param));
  if (!is_float(grad.dtype) || grad.shape != param.shape)
    user_error("[adamw8bit] expected a float gradient of shape {}, got {}", to_string(param.shape), to_string(grad));
  const ValueType &codes = spec.inputs[2], &scales = spec.inputs[3];
  Shape rows = codes.shape;  // of blocks
  if (codes.dtype != DType::kU8 || rows.size() != param.shape.size() + 1)
    user_error("[adamw8bit] expected codes in u8 with one dim more than {}, got {}", to_string(param),
               to_string(codes));
  int64_t length = rows.back();
  rows.pop_back();
  Shape elements = rows;
  elements.back() *= length;
  if (elements != param.shape || scales != ValueType{DType::kF32, rows} || length > kMostInBlock)
    user_error("[adamw8bit] expected codes and scales of blocks of {}, got {} and {}", to_string(param),
               to_string(codes), to_string(scales));
  if (spec.inputs[4] != codes || spec.inputs[5] != scales)
    user_error("[adamw8bit] expected v as m, {} and {}, got {} and {}", to_string(codes), to_string(scales),
               to_string(spec.inputs[4]), to_string(spec.inputs[5]));
  return {param, codes, scales, codes, scales};
}

// A moment of one block.
struct Moment {
  const HostTensor *codes, *scales;
  HostTensor *new_codes, *new_scales;

  double at(const DynamicMap& map, int64_t block, int64_t i) const {
    return double(map.value(uint8_t((*codes)[i]))) * (*scales)[block];
  }
  void keep(const DynamicMap& map, int64_t block, int64_t first, const std::vector<double>& values) const {
    double largest = 0;
    for (double value : values) largest = std::max(largest, std::fabs(value));
    (*new_scales)[block] = largest;
    for (size_t i = 0; i < values.size(); ++i)
      (*new_codes)[first + int64_t(i)] = map.code(largest > 0 ? float(values[i] / largest) : 0.0f);
  }
};

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  double lr = (*in[6])[0], scale = (*in[7])[0], step = (*in[8])[0];
  if (scale == 0) {
    for (size_t o = 0; o < out.size(); ++o) out[o].data = in[o == 0 ? 0 : o + 1]->data;
    return;
  }
  double beta1 = node.attrs.get_double("beta1"), beta2 = node.attrs.get_double("beta2");
  double kept = 1 - lr * node.attrs.get_double("decay"), eps = node.attrs.get_double("eps");
  double c1 = 1 - std::pow(beta1, step), c2 = 1 - std::pow(beta2, step);
  const DynamicMap of_m(true), of_v(false);
  Moment first{in[2], in[3], &out[1], &out[2]}, second{in[4], in[5], &out[3], &out[4]};
  int64_t length = in[2]->shape().back();
  std::vector<double> m(size_t(length), 0.0), v(size_t(length), 0.0);
  for (int64_t block = 0; block < in[3]->size(); ++block) {
    for (int64_t k = 0; k < length; ++k) {
      int64_t i = block * length + k;
      double g = (*in[1])[i] * scale;
      m[size_t(k)] = beta1 * first.at(of_m, block, i) + (1 - beta1) * g;
      v[size_t(k)] = beta2 * second.at(of_v, block, i) + (1 - beta2) * g * g;
      out[0][i] = (*in[0])[i] * kept - lr * (m[size_t(k)] / c1) / (std::sqrt(v[size_t(k)] / c2) + eps);
    }
    first.keep(of_m, block, block * length, m);
    second.keep(of_v, block, block * length, v);
  }
}

// Blocks are not cut.
ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType>) {
  ShardingRule rule;
  OperandFactors blocks = factors_of(rule, spec.inputs[3].shape), codes = blocks, elements = blocks;
  int inside = rule.whole(spec.inputs[2].shape.back());
  codes.push_back({inside});
  elements.back().push_back(inside);
  rule.inputs = {elements, elements, codes, blocks, codes, blocks, {}, {}, {}};
  rule.outputs = {elements, codes, blocks, codes, blocks};
  return rule;
}

// Beside AdamW's arithmetic a moment is looked up, measured and rounded.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, outputs);
  cost.flops = 34 * double(num_elements(outputs[0].shape));
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef adamw8bit = {.name = "adamw8bit",
                                   .min_inputs = 9,
                                   .max_inputs = 9,
                                   .attrs = kAttrs,
                                   .infer = infer,
                                   .no_gradient = "the update is the end of the step",
                                   .reference = reference,
                                   .cost = cost,
                                   .autocast = Autocast::kFull,
                                   .sharding = {.rule = sharding},
                                   .in_place = [](const Node&, int output) { return output == 0 ? 0 : output + 1; }};
}  // namespace op

int64_t block_length(int64_t columns) {
  int64_t blocks = ceil_div(columns, kMostInBlock);
  while (columns % blocks != 0) ++blocks;
  return columns / blocks;
}

ValueType moment_codes(const Shape& shape) {
  Shape codes = moment_scales(shape).shape;
  codes.push_back(block_length(shape.back()));
  return {DType::kU8, codes};
}

ValueType moment_scales(const Shape& shape) {
  Shape blocks = shape;
  blocks.back() /= block_length(shape.back());
  return {DType::kF32, blocks};
}

}  // namespace tokamak
