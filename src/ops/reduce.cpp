// Reductions: sum and maximum over given dims, and the sum of squares of many tensors. Those of floats are f32,
// whatever they read.

#include "ops/reduce.h"

#include "base/error.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/many_tensors.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/pointwise_op.h"
#include "ops/sharding_rules.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

constexpr AttrDef kReduceAttrs[] = {{"dims"}, {"keep"}};
constexpr AttrDef kSquaresAttrs[] = {{"pieces", false}};

Shape reduced_shape(const Shape& from, const std::vector<int64_t>& dims, bool keep) {
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    bool reduced = std::find(dims.begin(), dims.end(), int64_t(i)) != dims.end();
    if (!reduced) shape.push_back(from[i]);
    if (reduced && keep) shape.push_back(1);
  }
  return shape;
}

ValueTypes infer_reduce(const NodeSpec& spec) {
  const ValueType& x = spec.inputs[0];
  const auto& dims = spec.attrs.get_ints("dims");
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] >= int64_t(x.shape.size()) || (i && dims[i] <= dims[i - 1]))
      user_error("[{}] expected increasing dims of {}, got {}", spec.op.name, to_string(x.shape),
                 to_string(Attr(dims)));
  return {{is_float(x.dtype) ? DType::kF32 : x.dtype, reduced_shape(x.shape, dims, spec.attrs.get_bool("keep"))}};
}

void reduce(const Node& node, const HostTensor& x, HostTensor& y, double start, double (*combine)(double, double)) {
  // The kept-dims shape broadcasts to x, which gives every element of x its place in y.
  HostTensor kept({DType::kF32, reduced_shape(x.shape(), node.attrs.get_ints("dims"), true)});
  std::fill(y.data.begin(), y.data.end(), start);
  const HostTensor* operand = &kept;
  for_each_broadcast(x.shape(), {&operand, 1},
                     [&](int64_t i, std::span<const int64_t> at) { y[at[0]] = combine(y[at[0]], x[i]); });
}

void sum_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  reduce(node, *in[0], out[0], 0.0, [](double a, double b) { return a + b; });
}
void max_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  reduce(node, *in[0], out[0], -std::numeric_limits<double>::infinity(),
         [](double a, double b) { return std::max(a, b); });
}

ValueId keep_dims(GraphBuilder& g, const Node& node, ValueId value) {
  return reshape(g, value, reduced_shape(g.shape(node.inputs[0]), node.attrs.get_ints("dims"), true));
}

ValueIds sum_gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  const ValueType x = g.type(node.inputs[0]);
  return {add(g, keep_dims(g, node, dy[0]), constant(g, 0, x.shape, x.dtype))};
}

// Every element that equals the maximum gets the gradient, shared equally.
ValueIds max_gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  ValueId hit = equal(g, node.inputs[0], keep_dims(g, node, node.outputs[0]));
  ValueId count = reduce_sum(g, hit, node.attrs.get_ints("dims"), true);
  return {mul(g, hit, div(g, keep_dims(g, node, dy[0]), count))};
}

// How many sums of each tensor are wanted; 0: one of all tensors.
int64_t pieces_of(const Attrs& attrs) { return attrs.get_int("pieces", 0); }

ValueTypes infer_sum_squares(const NodeSpec& spec) {
  int64_t pieces = pieces_of(spec.attrs);
  for (const ValueType& type : spec.inputs) {
    if (!is_float(type.dtype)) user_error("[sum_squares] expected float tensors, got {}", to_string(type));
    if (pieces != 0 && (type.shape.empty() || pieces < 0 || type.shape[0] % pieces != 0))
      user_error("[sum_squares] expected dim 0 to be of {} equal pieces, got {}", pieces, to_string(type));
    if (pieces != 0 && type.shape != spec.inputs[0].shape)
      user_error("[sum_squares] expected tensors of one shape for sums of pieces, got {} and {}",
                 to_string(spec.inputs[0]), to_string(type));
  }
  return {{DType::kF32, pieces == 0 ? Shape{} : Shape{int64_t(spec.inputs.size()), pieces}}};
}

ShardingRule reduce_rule(const NodeSpec& spec, Factor::Rest rest) {
  ShardingRule rule;
  rule.inputs = {factors_of(rule, spec.inputs[0].shape)};
  const auto& dims = spec.attrs.get_ints("dims");
  OperandFactors y;
  for (size_t d = 0; d < rule.inputs[0].size(); ++d) {
    const DimFactors& dim = rule.inputs[0][d];
    bool reduced = std::find(dims.begin(), dims.end(), int64_t(d)) != dims.end();
    if (reduced) rule.factors[size_t(dim[0])].rest = rest;
    if (!reduced) y.push_back(dim);
    if (reduced && spec.attrs.get_bool("keep")) y.emplace_back();
  }
  rule.outputs = {std::move(y)};
  return rule;
}
ShardingRule sum_rule(const NodeSpec& spec, std::span<const ValueType>) {
  ShardingRule rule = reduce_rule(spec, Factor::Rest::kSum);
  rule.linear = {{0}};
  return rule;
}
ShardingRule max_rule(const NodeSpec& spec, std::span<const ValueType>) {
  return reduce_rule(spec, Factor::Rest::kMax);
}

ShardingRule sum_squares_rule(const NodeSpec& spec, std::span<const ValueType>) {
  ShardingRule rule;
  for (const ValueType& type : spec.inputs) rule.inputs.push_back(factors_of(rule, type.shape, Factor::Rest::kSum));
  int64_t pieces = pieces_of(spec.attrs);
  rule.sums_inputs = pieces == 0;
  rule.outputs = {{}};
  if (pieces == 0) return rule;
  if (spec.inputs.size() > 1)  // within pieces, one that is cut must not be with one that is not
    for (Factor& factor : rule.factors) factor.whole = true;
  int tensor = rule.whole(int64_t(spec.inputs.size())), piece = rule.apart(pieces);
  rule.outputs = {{{tensor}, {piece}}};
  for (OperandFactors& input : rule.inputs) {
    rule.factors[size_t(input[0][0])].size /= pieces;
    input[0].insert(input[0].begin(), piece);
  }
  return rule;
}

void set_part_pieces(Attrs& attrs, std::span<const Shape>, std::span<const Shape> outputs) {
  if (pieces_of(attrs) != 0) attrs.set("pieces", outputs[0][1]);
}

void sum_squares_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  int64_t pieces = pieces_of(node.attrs), first = 0;  // of the tensor's sums
  for (double& sum : out[0].data) sum = 0;
  for (const HostTensor* x : in) {
    for (int64_t i = 0; i < x->size(); ++i)
      out[0][pieces == 0 ? 0 : first + i / (x->size() / pieces)] += (*x)[i] * (*x)[i];
    first += pieces;
  }
}

ValueIds sum_squares_gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  ValueIds grads;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId x = node.inputs[i];
    Shape shape = g.shape(x);
    ValueId twice = mul(g, x, constant(g, 2)), of_piece = dy[0];
    if (int64_t pieces = pieces_of(node.attrs); pieces != 0) {
      twice = reshape(g, twice, {pieces, num_elements(shape) / pieces});
      of_piece = reshape(g, slice(g, of_piece, 0, int64_t(i), 1), {pieces, 1});
    }
    grads.push_back(reshape(g, mul(g, twice, of_piece), shape));
  }
  return grads;
}

}  // namespace

namespace op {
constinit const OpDef reduce_sum = {.name = "reduce_sum",
                                    .attrs = kReduceAttrs,
                                    .infer = infer_reduce,
                                    .gradient = sum_gradient,
                                    .reference = sum_reference,
                                    .cost = cost_of_elements<1>,
                                    .autocast = Autocast::kFull,
                                    .fusion = Fusion::kReduction,
                                    .sharding = {.rule = sum_rule}};
constinit const OpDef reduce_max = {.name = "reduce_max",
                                    .attrs = kReduceAttrs,
                                    .infer = infer_reduce,
                                    .gradient = max_gradient,
                                    .reference = max_reference,
                                    .cost = cost_of_elements<1>,
                                    .autocast = Autocast::kFull,
                                    .fusion = Fusion::kReduction,
                                    .sharding = {.rule = max_rule}};
constinit const OpDef sum_squares =
    of_many_tensors({.name = "sum_squares",
                     .attrs = kSquaresAttrs,
                     .infer = infer_sum_squares,
                     .gradient = sum_squares_gradient,
                     .reference = sum_squares_reference,
                     .cost = cost_of_elements<2>,
                     .sharding = {.rule = sum_squares_rule, .of_part = set_part_pieces}});
}  // namespace op

bool reduces_nothing(const Node& node, const ValueType& input) {
  if ((node.op != &op::reduce_sum && node.op != &op::reduce_max) || input.dtype != DType::kF32) return false;
  const auto& dims = node.attrs.get_ints("dims");
  return std::all_of(dims.begin(), dims.end(), [&](int64_t dim) { return input.shape[size_t(dim)] == 1; });
}

ValueId reduce_sum(GraphBuilder& g, ValueId a, std::vector<int64_t> dims, bool keep) {
  return g.add1(op::reduce_sum, {a}, {{"dims", std::move(dims)}, {"keep", keep}});
}
ValueId reduce_max(GraphBuilder& g, ValueId a, std::vector<int64_t> dims, bool keep) {
  return g.add1(op::reduce_max, {a}, {{"dims", std::move(dims)}, {"keep", keep}});
}
ValueId sum_squares(GraphBuilder& g, ValueIds values) { return g.add1(op::sum_squares, std::move(values)); }
ValueId sum_squares_of_pieces(GraphBuilder& g, ValueIds values, int64_t pieces) {
  return g.add1(op::sum_squares, std::move(values), {{"pieces", pieces}});
}

}  // namespace tokamak
