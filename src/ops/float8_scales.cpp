// float8_scales(v0, v1, ...) {has, widths} -> for each activation its scale and the inverse. `has` says which operands
// an activation has, in their order: 1 gain, 2 bias, 4 column, 8 column_bias (ops/float8_scales.h).
#include "ops/float8_scales.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/many_tensors.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"has"}, {"widths"}};
constexpr int64_t kColumn = 4, kAll = 15;
constexpr float kLeast = 1e-30f, kLargest = 448;

ValueTypes infer(const NodeSpec& spec) {
  const std::vector<int64_t>&has = spec.attrs.get_ints("has"), &widths = spec.attrs.get_ints("widths");
  int64_t operands = 0;
  for (int64_t bits : has) {
    if (bits < 1 || bits > kAll || (bits > kColumn + 3 && (bits & kColumn) == 0))
      user_error("[float8_scales] expected in has 1 to 7, or 12 to 15, got {}", bits);
    operands += std::popcount(uint64_t(bits));
  }
  if (has.size() != widths.size() || operands != int64_t(spec.inputs.size()))
    user_error("[float8_scales] expected {} widths and {} operands, got {} and {}", has.size(), operands, widths.size(),
               spec.inputs.size());
  for (const ValueType& type : spec.inputs)
    if (!is_float(type.dtype)) user_error("[float8_scales] expected float tensors, got {}", to_string(type));
  return ValueTypes(2 * has.size(), {DType::kF32, {}});
}

double largest_of(const HostTensor& x) {
  double largest = 0;
  for (double v : x.data) largest = std::max(largest, std::fabs(v));
  return largest;
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  auto next = in.begin();
  std::vector<Float8Bound> bounds = float8_bounds(node);
  for (size_t i = 0; i < bounds.size(); ++i) {
    std::array<double, 4> largest{};
    std::array<ValueId, 4> operands = operands_of(bounds[i]);
    for (size_t o = 0; o < operands.size(); ++o)
      if (operands[o] != kNoValue) largest[o] = largest_of(**next++);
    Float8Limits limits = limits_of(bounds[i], largest, [](double x) { return x; });
    out[2 * i][0] = limits.scale;
    out[2 * i + 1][0] = limits.inverse;
  }
}

ValueId largest(GraphBuilder& g, ValueId x) {
  ValueId wide = cast(g, x, DType::kF32);
  std::vector<int64_t> dims(g.shape(x).size());
  std::iota(dims.begin(), dims.end(), 0);
  ValueId magnitude = maximum(g, wide, neg(g, wide));
  return dims.empty() ? magnitude : reduce_max(g, magnitude, dims, false);
}

ValueId bound_of(GraphBuilder& g, const Float8Bound& bound) {
  bool product = bound.column != kNoValue;
  ValueId length = constant(g, float8_row_length(bound));
  ValueId row = bound.gain != kNoValue ? mul(g, length, largest(g, bound.gain)) : length;
  if (bound.bias != kNoValue) {
    ValueId more = largest(g, bound.bias);
    row = add(g, row, product ? mul(g, length, more) : more);
  }
  if (!product) return row;
  ValueId most = mul(g, row, largest(g, bound.column));
  if (bound.column_bias == kNoValue) return most;
  return add(g, most, mul(g, largest(g, bound.column_bias), constant(g, kFloat8Rounding)));
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  ValueIds outputs;
  Node moved = node;
  moved.inputs = ValueIds(in.begin(), in.end());
  for (const Float8Bound& bound : float8_bounds(moved)) {
    ValueId limit = maximum(g, bound_of(g, bound), constant(g, double(kLeast)));
    ValueId most = constant(g, double(kLargest));
    outputs.push_back(div(g, limit, most));
    outputs.push_back(div(g, most, limit));
  }
  return outputs;
}

}  // namespace

namespace op {
constinit const OpDef float8_scales = of_many_tensors({.name = "float8_scales",
                                                       .attrs = kAttrs,
                                                       .infer = infer,
                                                       .no_gradient = "made when all gradients are there",
                                                       .reference = reference,
                                                       .decompose = decompose,
                                                       .cost = cost_of_elements<1>});
}  // namespace op

std::array<ValueId, 4> operands_of(const Float8Bound& bound) {
  return {bound.gain, bound.bias, bound.column, bound.column_bias};
}

double float8_row_length(const Float8Bound& bound) {
  return std::sqrt(double(bound.width)) * (bound.column == kNoValue ? 1 : kFloat8Rounding);
}

std::vector<Float8Bound> float8_bounds(const Node& node) {
  const std::vector<int64_t>&has = node.attrs.get_ints("has"), &widths = node.attrs.get_ints("widths");
  std::vector<Float8Bound> bounds;
  auto next = node.inputs.begin();
  for (size_t i = 0; i < has.size(); ++i) {
    Float8Bound& bound = bounds.emplace_back();
    bound.width = widths[i];
    ValueId* operands[] = {&bound.gain, &bound.bias, &bound.column, &bound.column_bias};
    for (int o = 0; o < 4; ++o)
      if (has[i] >> o & 1) *operands[o] = *next++;
  }
  return bounds;
}

Float8Limits limits_of(const Float8Bound& bound, const std::array<double, 4>& largest, double (*rounded)(double)) {
  bool is_product = bound.column != kNoValue;
  double length = rounded(float8_row_length(bound));
  double most = bound.gain != kNoValue ? rounded(length * largest[0]) : length;
  if (bound.bias != kNoValue) most = rounded(most + (is_product ? rounded(length * largest[1]) : largest[1]));
  if (is_product) most = rounded(most * largest[2]);
  if (bound.column_bias != kNoValue) most = rounded(most + rounded(largest[3] * rounded(kFloat8Rounding)));
  most = std::max(most, double(kLeast));
  return {rounded(most / kLargest), rounded(kLargest / most)};
}

std::vector<Float8Scale> float8_scales(GraphBuilder& g, std::span<const Float8Bound> bounds) {
  std::vector<int64_t> has, widths;
  ValueIds inputs;
  for (const Float8Bound& bound : bounds) {
    std::array<ValueId, 4> operands = operands_of(bound);
    int64_t bits = 0;
    for (size_t o = 0; o < operands.size(); ++o)
      if (operands[o] != kNoValue) bits |= int64_t(1) << o, inputs.push_back(operands[o]);
    has.push_back(bits);
    widths.push_back(bound.width);
  }
  ValueIds made = g.add(op::float8_scales, std::move(inputs), {{"has", std::move(has)}, {"widths", std::move(widths)}});
  std::vector<Float8Scale> scales;
  for (size_t i = 0; i < made.size(); i += 2) scales.push_back({made[i], made[i + 1]});
  return scales;
}

}  // namespace tokamak
