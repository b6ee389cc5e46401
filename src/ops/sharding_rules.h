// Sharding rules (graph/sharding_rule.h) of nodes: the op's own, or that of its class. An op without one keeps all dims
// whole, which is always right. Tests: tests/ops/sharding_rules_test.cpp.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

/// Pointwise ops are cut along every dim of their result, all others not at all unless they have a rule of their own.
ShardingRule sharding_rule(const NodeSpec& spec, std::span<const ValueType> outputs);

/// The rules of those classes.
ShardingRule pointwise_rule(const NodeSpec& spec, std::span<const ValueType> outputs);
ShardingRule whole_rule(const NodeSpec& spec, std::span<const ValueType> outputs);
/// pointwise_rule of an op that is linear in all of its inputs together, in each of its inputs, and in its first.
ShardingRule linear_rule(const NodeSpec& spec, std::span<const ValueType> outputs);
ShardingRule multilinear_rule(const NodeSpec& spec, std::span<const ValueType> outputs);
ShardingRule linear_in_first_rule(const NodeSpec& spec, std::span<const ValueType> outputs);

/// Of an op that gives each of `parts` equal parts of dim 0 another number of rows: only whole parts may be apart.
ShardingRule rows_in_parts_rule(const Shape& from, const Shape& to, int64_t parts);

/// A new factor for each dim of the shape, with which operands are described.
OperandFactors factors_of(ShardingRule& rule, const Shape& shape, Factor::Rest rest = Factor::Rest::kSame);
/// The same, none of which may be cut.
OperandFactors whole_factors(ShardingRule& rule, const Shape& shape);
/// The same, of which the last may not be cut.
OperandFactors row_factors(ShardingRule& rule, const Shape& shape, Factor::Rest rest = Factor::Rest::kSame);

/// The same, which are numbered, of a node that has random numbers; none may be cut where it has but a part
/// (ops/element_place.h).
OperandFactors numbered_factors(ShardingRule& rule, const Attrs& attrs, const Shape& shape);

/// Rule of an op whose inputs are tensors of one shape or scalars, and whose outputs are of that shape as well.
ShardingRule elementwise_rule(const NodeSpec& spec, std::span<const ValueType> outputs);

/// Index at which the rank's part of a placed factor begins, f32[].
ValueId start_of(GraphBuilder& g, const PlacedCut& cut);

/// Attribute `shape` becomes the shape of the only output.
void set_part_shape(Attrs& attrs, std::span<const Shape> inputs, std::span<const Shape> outputs);

}  // namespace tokamak
