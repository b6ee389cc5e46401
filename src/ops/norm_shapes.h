// What the shape rules and decompositions of norms share. Rows lie along the last dim.
#pragma once

#include "base/error.h"
#include "ops/sharding_rules.h"

namespace tokamak {

/// Dims to reduce over: along a row, and down the columns.
inline std::vector<int64_t> last_dim(const Shape& shape) { return {int64_t(shape.size()) - 1}; }
inline std::vector<int64_t> leading_dims(const Shape& shape) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i + 1 < shape.size(); ++i) dims.push_back(int64_t(i));
  return dims;
}
/// Of one number a row.
inline Shape row_shape(Shape shape) {
  shape.back() = 1;
  return shape;
}

/// Throw a UserError when inputs of the node do not fit: a scalar, two of other shapes, no vector of a row's length.
inline void require_rank(const NodeSpec& spec) {
  if (spec.inputs[0].shape.empty()) user_error("[{}] expected one dim or more, got a scalar", spec.op.name);
}
inline void require_same(const NodeSpec& spec, size_t a, size_t b) {
  if (spec.inputs[a].shape != spec.inputs[b].shape)
    user_error("[{}] expected inputs {} and {} of one shape, got {} and {}", spec.op.name, a, b,
               to_string(spec.inputs[a]), to_string(spec.inputs[b]));
}
inline void require_vector(const NodeSpec& spec, size_t i) {
  if (spec.inputs[i].shape != Shape{spec.inputs[0].shape.back()})
    user_error("[{}] expected input {} to be [{}], got {}", spec.op.name, i, spec.inputs[0].shape.back(),
               to_string(spec.inputs[i]));
}

/// Sharding rule of an op whose first input is cut into rows: each operand is of its shape, one number a row, or a row
/// of numbers.
inline ShardingRule rows_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  const Shape& shape = spec.inputs[0].shape;
  OperandFactors matrix = row_factors(rule, shape), column = matrix, row = {matrix.back()};
  column.back().clear();
  auto like = [&](const ValueType& type) {
    return type.shape == shape ? matrix : type.shape.size() == shape.size() ? column : row;
  };
  for (const ValueType& input : spec.inputs) rule.inputs.push_back(like(input));
  for (const ValueType& output : outputs) rule.outputs.push_back(like(output));
  return rule;
}
/// The same of an op whose outputs are rows of numbers, each a sum down the column: columns may be cut too.
inline ShardingRule column_sums_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule = rows_rule(spec, outputs);
  for (const DimFactors& dim : rule.inputs[0]) rule.factors[size_t(dim[0])].rest = Factor::Rest::kSum;
  rule.factors[size_t(rule.inputs[0].back()[0])] = {.size = spec.inputs[0].shape.back()};
  return rule;
}

}  // namespace tokamak
