// Graphs of one matmul, plain or fused in each form that the GPU takes.
#pragma once

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <string>
#include <vector>

namespace tokamak::test {

enum class MatmulForm {
  kPlain,
  kBias,
  kBiasGelu,
  kBiasGeluAux,
  kGeluGrad,
  kGeluGradSums,
  kBiasReluSquaredAux,  // functions without an op of their own: with the sum stored,
  kGateSums,            // and of a matrix and the product, with its sums
  kCast,
  kAccumulate,
  kAccumulateCast
};

/// Those that cuBLASLt has.
inline constexpr MatmulForm kMatmulForms[] = {
    MatmulForm::kPlain,    MatmulForm::kBias, MatmulForm::kBiasGelu,   MatmulForm::kBiasGeluAux,
    MatmulForm::kGeluGrad, MatmulForm::kCast, MatmulForm::kAccumulate, MatmulForm::kAccumulateCast};

struct MatmulCase {
  MatmulForm form = MatmulForm::kPlain;
  DType dtype = DType::kF32;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false, tf32 = false;
};

inline bool is_low(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

/// Forms that make sense of the operands' type.
inline bool exists(const MatmulCase& c) {
  return is_low(c.dtype) || (c.form != MatmulForm::kCast && c.form != MatmulForm::kAccumulateCast);
}

/// What a form reads besides a and b (kPlain and kCast: not used).
inline ValueType extra_operand(const MatmulCase& c, const Shape& product) {
  if (c.form == MatmulForm::kGeluGrad || c.form == MatmulForm::kGeluGradSums || c.form == MatmulForm::kGateSums ||
      c.form == MatmulForm::kAccumulate)
    return {c.dtype, product};
  if (c.form == MatmulForm::kAccumulateCast) return {DType::kF32, product};
  return {c.dtype, {c.n}};
}

/// Appends the form's body and returns its results.
inline ValueIds matmul_body(GraphBuilder& g, const MatmulCase& c, const ValueIds& in) {
  Attrs attrs{{"trans_a", c.trans_a}, {"trans_b", c.trans_b}};
  if (c.tf32) attrs.set("tf32", true);
  ValueId mm = g.add1(op::matmul, {in[0], in[1]}, attrs);
  switch (c.form) {
    case MatmulForm::kPlain: return {mm};
    case MatmulForm::kBias: return {add(g, mm, in[2])};
    case MatmulForm::kBiasGelu: return {gelu(g, add(g, in[2], mm))};
    case MatmulForm::kBiasGeluAux: {
      ValueId sum = add(g, mm, in[2]);
      return {sum, gelu(g, sum)};
    }
    case MatmulForm::kGeluGrad: return {g.add1(op::gelu_grad, {in[2], mm})};
    case MatmulForm::kGeluGradSums: {
      ValueId gradient = g.add1(op::gelu_grad, {in[2], mm});
      std::vector<int64_t> rows = c.batch > 1 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
      return {gradient, reduce_sum(g, cast(g, gradient, DType::kF32), rows, true)};
    }
    case MatmulForm::kBiasReluSquaredAux: {
      ValueId sum = add(g, mm, in[2]), positive = maximum(g, sum, constant(g, 0, {}, c.dtype));
      return {sum, mul(g, positive, positive)};
    }
    case MatmulForm::kGateSums: {  // in[2] * silu(mm), in f32 as autocast would have it
      ValueId x = cast(g, mm, DType::kF32), one = constant(g, 1);
      ValueId y = mul(g, cast(g, in[2], DType::kF32), div(g, x, add(g, one, exp(g, neg(g, x)))));
      ValueId gated = cast(g, y, c.dtype);
      return {gated, reduce_sum(g, cast(g, gated, DType::kF32), {0}, true)};
    }
    case MatmulForm::kCast: return {cast(g, mm, DType::kF32)};
    case MatmulForm::kAccumulate: return {add(g, in[2], mm)};
    case MatmulForm::kAccumulateCast: return {add(g, in[2], cast(g, mm, DType::kF32))};
  }
  return {};
}

/// One matmul node, or one group, of inputs a, b [, c]; results r0 [, r1].
inline Graph matmul_graph(const MatmulCase& c) {
  Shape a = c.trans_a ? Shape{c.k, c.m} : Shape{c.m, c.k}, b = c.trans_b ? Shape{c.n, c.k} : Shape{c.k, c.n};
  Shape product{c.m, c.n};
  if (c.batch > 1)
    for (Shape* shape : {&a, &b, &product}) shape->insert(shape->begin(), c.batch);
  ValueTypes types{{c.dtype, a}, {c.dtype, b}};
  if (c.form != MatmulForm::kPlain && c.form != MatmulForm::kCast) types.push_back(extra_operand(c, product));
  Graph graph("matmul");
  GraphBuilder g(graph);
  ValueIds inputs, arguments, results;
  for (size_t i = 0; i < types.size(); ++i) inputs.push_back(g.input(std::string(1, char('a' + i)), types[i]));
  if (c.form == MatmulForm::kPlain) {
    results = matmul_body(g, c, inputs);
  } else {
    auto body = std::make_shared<Graph>("body");
    GraphBuilder inner(*body);
    for (size_t i = 0; i < types.size(); ++i) arguments.push_back(inner.input("a" + std::to_string(i), types[i]));
    ValueIds made = matmul_body(inner, c, arguments);
    for (size_t i = 0; i < made.size(); ++i) body->add_result("r" + std::to_string(i), made[i]);
    results = g.add(op::fused_matmul, inputs, {}, body);
  }
  for (size_t i = 0; i < results.size(); ++i) graph.add_result("r" + std::to_string(i), results[i]);
  return graph;
}

}  // namespace tokamak::test
