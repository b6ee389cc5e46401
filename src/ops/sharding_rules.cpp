#include "ops/sharding_rules.h"

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

namespace tokamak {
namespace {

// Factors of an operand that is broadcast to `result`, of dims of size > 1.
OperandFactors broadcast_factors(const Shape& shape, const OperandFactors& result) {
  OperandFactors factors(shape.size());
  size_t extra = result.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1) factors[d] = result[d + extra];
  return factors;
}

}  // namespace

ShardingRule pointwise_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  rule.outputs = {factors_of(rule, outputs[0].shape)};
  for (const ValueType& input : spec.inputs) rule.inputs.push_back(broadcast_factors(input.shape, rule.outputs[0]));
  return rule;
}

ShardingRule whole_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  for (const ValueType& input : spec.inputs) rule.inputs.push_back(whole_factors(rule, input.shape));
  for (const ValueType& output : outputs) rule.outputs.push_back(whole_factors(rule, output.shape));
  return rule;
}

ShardingRule linear_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule = pointwise_rule(spec, outputs);
  rule.linear.emplace_back();
  for (size_t i = 0; i < spec.inputs.size(); ++i) rule.linear[0].push_back(int(i));
  return rule;
}

ShardingRule multilinear_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule = pointwise_rule(spec, outputs);
  for (size_t i = 0; i < spec.inputs.size(); ++i) rule.linear.push_back({int(i)});
  return rule;
}

ShardingRule linear_in_first_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule = pointwise_rule(spec, outputs);
  rule.linear = {{0}};
  return rule;
}

ShardingRule rows_in_parts_rule(const Shape& from, const Shape& to, int64_t parts) {
  ShardingRule rule;
  OperandFactors before = factors_of(rule, from), after = before;
  int part = rule.apart(parts);
  before[0] = {part, rule.whole(from[0] / parts)};
  after[0] = {part, rule.whole(to[0] / parts)};
  rule.inputs = {before};
  rule.outputs = {after};
  rule.linear = {{0}};
  return rule;
}

OperandFactors factors_of(ShardingRule& rule, const Shape& shape, Factor::Rest rest) {
  OperandFactors factors;
  for (int64_t size : shape) factors.push_back({rule.add({size, rest})});
  return factors;
}

OperandFactors whole_factors(ShardingRule& rule, const Shape& shape) {
  OperandFactors factors;
  for (int64_t size : shape) factors.push_back({rule.whole(size)});
  return factors;
}

OperandFactors numbered_factors(ShardingRule& rule, const Attrs& attrs, const Shape& shape) {
  if (attrs.find("place")) return whole_factors(rule, shape);
  OperandFactors factors;
  for (int64_t size : shape) factors.push_back({rule.add({.size = size, .numbered = true})});
  return factors;
}

OperandFactors row_factors(ShardingRule& rule, const Shape& shape, Factor::Rest rest) {
  OperandFactors factors = factors_of(rule, shape, rest);
  rule.factors[size_t(factors.back()[0])] = {.size = shape.back(), .whole = true};
  return factors;
}

ShardingRule elementwise_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  OperandFactors tensor = factors_of(rule, outputs[0].shape);
  for (const ValueType& input : spec.inputs) rule.inputs.push_back(input.shape.empty() ? OperandFactors{} : tensor);
  rule.outputs.assign(outputs.size(), tensor);
  return rule;
}

ShardingRule sharding_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  if (spec.op.sharding.rule) return spec.op.sharding.rule(spec, outputs);
  return spec.op.fusion == Fusion::kPointwise ? pointwise_rule(spec, outputs) : whole_rule(spec, outputs);
}

ValueId start_of(GraphBuilder& g, const PlacedCut& cut) {
  return mul(g, cut.coordinate, constant(g, double(cut.length)));
}

void set_part_shape(Attrs& attrs, std::span<const Shape>, std::span<const Shape> outputs) {
  attrs.set("shape", outputs[0]);
}

}  // namespace tokamak
