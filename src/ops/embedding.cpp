// embedding: rows of a table by index; its gradient adds rows up, in order of the ids, onto zero or onto a given base.
// embedding_grad(dy, ids[, base]): dy and base may be of any float type; the sums are made in f32 and have the base's
// type, or f32 without one.

#include "ops/embedding.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/sharding_rules.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr AttrDef kGradAttrs[] = {{"rows"}};

ValueTypes infer(const NodeSpec& spec) {
  const ValueType &table = spec.inputs[0], &ids = spec.inputs[1];
  if (table.shape.size() != 2 || ids.dtype != DType::kI32)
    user_error("[embedding] expected a table (V, C) and i32 ids, got {} and {}", to_string(table), to_string(ids));
  Shape shape = ids.shape;
  shape.push_back(table.shape[1]);
  return {{table.dtype, shape}};
}

int64_t checked_row(double id, int64_t rows) {
  if (id < 0 || id >= double(rows)) user_error("[embedding] expected ids below {}, got {}", rows, id);
  return int64_t(id);
}

void reference(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const HostTensor &table = *in[0], &ids = *in[1];
  int64_t cols = table.shape()[1];
  for (int64_t i = 0; i < ids.size(); ++i)
    for (int64_t c = 0; c < cols; ++c) out[0][i * cols + c] = table[checked_row(ids[i], table.shape()[0]) * cols + c];
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  return {g.add1(op::embedding_grad, {dy[0], node.inputs[1]}, {{"rows", g.shape(node.inputs[0])[0]}}), kNoValue};
}

// Ids in a part of the table: their rows there, and 1 where they lie in it, else 0 (and some row), as (ids..., 1).
struct PlacedIds {
  ValueId rows, inside;
};
PlacedIds place_ids(GraphBuilder& g, ValueId ids, ValueId start, int64_t rows) {
  ValueId row = sub(g, ids, start), zero = constant(g, 0), last = constant(g, double(rows - 1));
  ValueId nearest = minimum(g, maximum(g, row, zero), last);
  Shape column = g.shape(ids);
  column.push_back(1);
  return {cast(g, nearest, DType::kI32), reshape(g, equal(g, row, nearest), column)};
}

// Ids and columns apart. Of a table that is cut into blocks of rows, each rank gives the rows that it has, else zeros.
ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType>) {
  ShardingRule rule;
  OperandFactors ids = factors_of(rule, spec.inputs[1].shape), y = ids;
  int rows = rule.add({.size = spec.inputs[0].shape[0], .rest = Factor::Rest::kSum, .placed = true});
  y.push_back({rule.apart(spec.inputs[0].shape[1])});
  rule.inputs = {{{rows}, y.back()}, ids};
  rule.outputs = {y};
  return rule;
}
ValueIds place(GraphBuilder& g, const Node&, std::span<const ValueId> in, const PlacedCut& cut,
               std::span<const PlacedCut>) {
  auto [rows, inside] = place_ids(g, in[1], start_of(g, cut), g.shape(in[0])[0]);
  return {cast(g, mul(g, embedding(g, in[0], rows), inside), g.type(in[0]).dtype)};
}

Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  return {0, 2 * double(num_bytes(outputs[0])) + double(num_bytes(spec.inputs[1]))};
}

ValueTypes infer_grad(const NodeSpec& spec) {
  const ValueType &dy = spec.inputs[0], &ids = spec.inputs[1];
  Shape expected = ids.shape;
  if (!dy.shape.empty()) expected.push_back(dy.shape.back());
  if (dy.shape != expected || !is_float(dy.dtype) || ids.dtype != DType::kI32)
    user_error("[embedding_grad] expected dy (..., C) and i32 ids (...), got {} and {}", to_string(dy), to_string(ids));
  ValueType table{DType::kF32, {spec.attrs.get_int("rows"), dy.shape.back()}};
  if (spec.inputs.size() < 3) return {table};
  const ValueType& base = spec.inputs[2];
  if (base.shape != table.shape || !is_float(base.dtype))
    user_error("[embedding_grad] expected a base {}, got {}", to_string(table), to_string(base));
  return {base};
}

void grad_reference(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const HostTensor &dy = *in[0], &ids = *in[1];
  int64_t cols = out[0].shape()[1];
  if (in.size() == 3)
    out[0].data = in[2]->data;
  else
    std::fill(out[0].data.begin(), out[0].data.end(), 0.0);
  for (int64_t i = 0; i < ids.size(); ++i)
    for (int64_t c = 0; c < cols; ++c) out[0][checked_row(ids[i], out[0].shape()[0]) * cols + c] += dy[i * cols + c];
}

// Ids summed, columns and, given where they begin, rows apart. A base must not be added more than once.
ShardingRule grad_sharding(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  bool has_base = spec.inputs.size() == 3;
  OperandFactors ids = factors_of(rule, spec.inputs[1].shape, Factor::Rest::kSum), dy = ids;
  for (const DimFactors& dim : ids) rule.factors[size_t(dim[0])].whole = has_base;
  OperandFactors table = {{rule.add({.size = outputs[0].shape[0], .placed = true})}, {rule.apart(outputs[0].shape[1])}};
  dy.push_back(table[1]);
  rule.inputs = {dy, ids};
  if (has_base) rule.inputs.push_back(table);
  rule.outputs = {table};
  return rule;
}
void grad_of_part(Attrs& attrs, std::span<const Shape>, std::span<const Shape> outputs) {
  attrs.set("rows", outputs[0][0]);
}
ValueIds place_grad(GraphBuilder& g, const Node& part, std::span<const ValueId> in, const PlacedCut& cut,
                    std::span<const PlacedCut>) {
  auto [rows, inside] = place_ids(g, in[1], start_of(g, cut), part.attrs.get_int("rows"));
  ValueIds inputs{in.begin(), in.end()};
  inputs[0] = mul(g, in[0], inside);
  inputs[1] = rows;
  return {g.add1(op::embedding_grad, std::move(inputs), part.attrs)};
}

Cost grad_cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  double updates = double(num_bytes(spec.inputs[0]));
  return {double(num_elements(spec.inputs[0].shape)), 3 * updates + double(num_bytes(outputs[0]))};
}

}  // namespace

namespace op {
constinit const OpDef embedding = {.name = "embedding",
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .infer = infer,
                                   .gradient = gradient,
                                   .reference = reference,
                                   .cost = cost,
                                   .sharding = {.rule = sharding, .place = place}};
constinit const OpDef embedding_grad = {
    .name = "embedding_grad",
    .min_inputs = 2,
    .max_inputs = 3,
    .attrs = kGradAttrs,
    .infer = infer_grad,
    .no_gradient = "second derivatives are not needed",
    .reference = grad_reference,
    .cost = grad_cost,
    .autocast = Autocast::kFull,
    .sharding = {.rule = grad_sharding, .of_part = grad_of_part, .place = place_grad},
    .in_place = [](const Node& node, int) { return node.inputs.size() == 3 ? 2 : -1; }};
}  // namespace op

ValueId embedding(GraphBuilder& g, ValueId table, ValueId ids) { return g.add1(op::embedding, {table, ids}); }

}  // namespace tokamak
