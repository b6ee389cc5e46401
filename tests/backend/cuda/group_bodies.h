// Bodies of groups of every form that ops/group_form.h allows, for tests of generated code.
#pragma once

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/softcap.h"

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace tokamak::test {

struct GroupCase {
  std::string name;
  const OpDef* op = nullptr;
  /// Appends the body for a matrix of (R, C).
  std::function<void(GraphBuilder&, Graph&, int64_t R, int64_t C)> fill;
  int64_t max_cols = std::numeric_limits<int64_t>::max();
};

inline void PrintTo(const GroupCase& c, std::ostream* out) { *out << c.op->name << ' ' << c.name; }

/// A graph of one group, whose arguments are those of the body.
inline Graph make_group(const GroupCase& c, int64_t rows, int64_t cols) {
  auto body = std::make_shared<Graph>("body");
  GraphBuilder inner(*body);
  c.fill(inner, *body, rows, cols);
  Graph graph("group");
  GraphBuilder g(graph);
  ValueIds inputs;
  for (const Argument& argument : body->arguments())
    inputs.push_back(g.input(argument.name, body->type(argument.value)));
  ValueIds outputs = g.add(*c.op, inputs, {}, body);
  for (size_t i = 0; i < outputs.size(); ++i) graph.add_result("r" + std::to_string(i), outputs[i]);
  verify(graph);
  return graph;
}

namespace bodies {

inline ValueId in(GraphBuilder& g, const char* name, Shape shape, DType dtype = DType::kF32) {
  return g.input(name, {dtype, std::move(shape)});
}
inline ValueId scalar(GraphBuilder& g, double value) { return constant(g, value, {1, 1}); }
inline constexpr DType kBF16 = DType::kBF16, kF16 = DType::kF16, kF32 = DType::kF32, kI32 = DType::kI32;

inline void broadcasts(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C}), b = in(g, "b", {1, C}), d = in(g, "d", {R, 1}), s = in(g, "s", {1, 1});
  ValueId y = mul(g, gelu(g, add(g, mul(g, a, b), d)), s);
  body.add_result("y", y);
  body.add_result("z", sub(g, a, y));
}
inline void uniform_values(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId d = in(g, "d", {R, 1}), b = in(g, "b", {1, C}), s = in(g, "s", {1, 1});
  ValueId row = exp(g, mul(g, d, s)), column = tanh(g, sub(g, b, s));  // (R, 1) and (1, C)
  body.add_result("outer", mul(g, row, column));
  body.add_result("sum", add(g, exp(g, column), d));
}
inline void edges(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = reshape(g, in(g, "a", {1, R, 1, C}), {R, C}), b = reshape(g, in(g, "b", {C}), {1, C});
  body.add_result("y", reshape(g, add(g, a, b), {R * C}));
}
inline void flat_types(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C}, kBF16), b = in(g, "b", {1, C}, kBF16);
  ValueId ids = in(g, "ids", {R, 1}, kI32), all = in(g, "all", {R, C}, kI32);
  ValueId sum = add(g, cast(g, a, kF32), cast(g, b, kF32));
  body.add_result("f32", add(g, sum, mul(g, ids, all)));
  body.add_result("bf16", cast(g, mul(g, sum, scalar(g, 0.3)), kBF16));
  body.add_result("i32", cast(g, mul(g, sum, scalar(g, 64)), kI32));
  body.add_result("f16", cast(g, sum, kF16));
}
inline void rounding(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C}), b = in(g, "b", {R, C}, kF16);
  body.add_result("bf16", sub(g, a, cast(g, cast(g, a, kBF16), kF32)));
  body.add_result("f16", sub(g, cast(g, cast(g, mul(g, a, b), kF16), kF32), b));
}
inline void gelu_gradient(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId x = cast(g, in(g, "x", {R, C}, kBF16), kF32), dy = cast(g, in(g, "dy", {R, C}, kBF16), kF32);
  body.add_result("dx", cast(g, g.add1(op::gelu_grad, {mul(g, x, scalar(g, 8)), dy}), kBF16));
}
inline void functions(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C}), p = in(g, "p_positive", {R, C});
  body.add_result("exp", exp(g, mul(g, a, scalar(g, 20))));
  body.add_result("tanh", tanh(g, mul(g, a, scalar(g, 3))));
  body.add_result("log", log(g, p));
  body.add_result("pow", pow(g, p, a));
  body.add_result("roots", div(g, sqrt(g, p), rsqrt(g, p)));
  body.add_result("relu2", relu2(g, a));
  body.add_result("relu2_grad", g.add1(op::relu2_grad, {a, p}));
  body.add_result("choice", select(g, less(g, a, scalar(g, 0)), maximum(g, a, p), minimum(g, a, neg(g, p))));
}
inline void generators(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId rng = in(g, "rng", {2}, kI32), a = in(g, "a", {R, C});
  body.add_result("across", add(g, a, iota(g, {1, C}, 1)));
  body.add_result("down", add(g, a, iota(g, {R, 1}, 0)));
  body.add_result("both", iota(g, {R, C}, 1));
  body.add_result("periods", add(g, iota(g, {R, 1}, 0, 3), mul(g, iota(g, {1, C}, 1, 5), a)));
  body.add_result("random", random_uniform(g, rng, {R, C}, 3));
  body.add_result("random_row", add(g, a, random_uniform(g, rng, {1, C}, 4)));
  body.add_result("random_column", add(g, a, random_uniform(g, rng, {R, 1}, 5)));
  body.add_result("constant", constant(g, 0.25, {R, C}));
  body.add_result("computed", exp(g, constant(g, 0.25, {R, C})));
}
inline void random_line(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId rng = in(g, "rng", {2}, kI32), a = in(g, "a", {R, C}, kBF16);
  ValueId kept = less(g, random_uniform(g, rng, {R, C}, 7), scalar(g, 0.9));
  body.add_result("y", cast(g, select(g, kept, mul(g, a, scalar(g, 1 / 0.9)), scalar(g, 0)), kBF16));
}

inline void no_reduction(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C}), d = in(g, "d", {R, 1});
  body.add_result("y", mul(g, a, d));
  body.add_result("per_row", exp(g, d));
}
inline void one_reduction(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C}), b = in(g, "b", {1, C});
  ValueId s = reduce_sum(g, mul(g, a, b), {1}, true);
  body.add_result("s", s);
  body.add_result("y", sub(g, a, mul(g, s, scalar(g, 1.0 / double(C)))));
}
inline void softmax_lse(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C});
  ValueId top = reduce_max(g, a, {1}, true);
  ValueId e = exp(g, sub(g, a, top));
  ValueId s = reduce_sum(g, e, {1}, true);
  body.add_result("y", div(g, e, s));
  body.add_result("lse", reshape(g, add(g, log(g, s), top), {R}));
}
// Of attention: sequences of 5 lie below each other. Scores are scaled, masked and become probabilities, and back.
inline ValueId hidden(GraphBuilder& g, int64_t R, int64_t C) {
  return less(g, iota(g, {R, 1}, 0, 5), iota(g, {1, C}, 1));
}
inline void causal_softmax(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId s = mul(g, in(g, "s", {R, C}, kBF16), scalar(g, 0.125));
  s = select(g, hidden(g, R, C), scalar(g, -std::numeric_limits<double>::infinity()), s);
  ValueId e = exp(g, sub(g, s, reduce_max(g, s, {1}, true)));
  body.add_result("p", cast(g, mul(g, e, div(g, scalar(g, 1), reduce_sum(g, e, {1}, true))), kBF16));
}
inline void causal_softmax_gradient(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId p = cast(g, in(g, "p", {R, C}, kBF16), kF32), dp = cast(g, in(g, "dp", {R, C}, kBF16), kF32);
  ValueId ds = cast(g, mul(g, p, sub(g, dp, reduce_sum(g, mul(g, p, dp), {1}, true))), kBF16);
  body.add_result("ds", cast(g, mul(g, select(g, hidden(g, R, C), scalar(g, 0), ds), scalar(g, 0.125)), kBF16));
}
inline ValueId normalized(GraphBuilder& g, Graph& body, ValueId x, int64_t C) {
  ValueId n = scalar(g, 1.0 / double(C));
  ValueId mean = mul(g, reduce_sum(g, x, {1}, true), n), centred = sub(g, x, mean);
  ValueId variance = mul(g, reduce_sum(g, mul(g, centred, centred), {1}, true), n);
  ValueId rstd = rsqrt(g, add(g, variance, scalar(g, 1e-2)));
  body.add_result("mean", mean);
  body.add_result("rstd", rstd);
  return mul(g, centred, rstd);
}
inline void layer_norm(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId x = in(g, "x", {R, C}), delta = in(g, "delta", {R, C}, kBF16);
  ValueId gain = reshape(g, in(g, "gain", {C}), {1, C}), bias = reshape(g, in(g, "bias", {C}), {1, C});
  ValueId sum = add(g, x, cast(g, delta, kF32));
  ValueId y = add(g, mul(g, normalized(g, body, sum, C), gain), bias);
  body.add_result("sum", sum);
  body.add_result("y", cast(g, y, kBF16));
}
inline void dropout_layer_norm(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId x = in(g, "x", {R, C}), rng = in(g, "rng", {2}, kI32);
  ValueId kept = less(g, random_uniform(g, rng, {R, C}, 2), scalar(g, 0.5));
  ValueId y = normalized(g, body, select(g, kept, scalar(g, 0), x), C);
  ValueId top = reduce_max(g, y, {1}, true);
  body.add_result("y", exp(g, sub(g, y, top)));
  body.add_result("top", top);
}
inline void row_mixture(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C}), d = in(g, "d", {R, 1});
  ValueId s = reduce_sum(g, a, {1}, true), top = reduce_max(g, mul(g, a, d), {1}, true);
  body.add_result("s", s);
  body.add_result("top", mul(g, top, s));
  body.add_result("y", mul(g, add(g, a, top), d));
}
inline void uniform_reductions(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId d = in(g, "d", {R, 1}), a = in(g, "a", {R, C});
  ValueId half = constant(g, 0.5, {R, C});
  ValueId wide = add(g, d, mul(g, half, constant(g, 2, {1, C})));
  body.add_result("sum", reduce_sum(g, wide, {1}, true));
  body.add_result("max", reduce_max(g, wide, {1}, true));
  body.add_result("y", add(g, a, reduce_sum(g, half, {1}, true)));
}
inline void row_types(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = cast(g, in(g, "a", {R, C}, kBF16), kF32), target = in(g, "target", {R, 1}, kI32);
  ValueId hit = equal(g, iota(g, {1, C}, 1), target);
  ValueId picked = reduce_sum(g, select(g, hit, a, scalar(g, 0)), {1}, true);
  ValueId top = reduce_max(g, a, {1}, true);
  body.add_result("picked", picked);
  body.add_result("y", cast(g, sub(g, a, top), kBF16));
  body.add_result("top", cast(g, top, kBF16));
}
// Loss and gradient of logits whose last columns are padding.
inline void cross_entropy_both(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId logits = in(g, "logits", {R, C}, kBF16), target = reshape(g, in(g, "target", {R}, kI32), {R, 1});
  ValueId column = iota(g, {1, C}, 1), valid = less(g, column, scalar(g, double(C - C / 16)));
  ValueId x = select(g, valid, logits, scalar(g, -std::numeric_limits<double>::infinity()));
  ValueId top = reduce_max(g, x, {1}, true);
  ValueId lse = add(g, log(g, reduce_sum(g, exp(g, sub(g, x, top)), {1}, true)), top);
  ValueId hit = equal(g, column, target);
  ValueId picked = reduce_sum(g, select(g, hit, logits, scalar(g, 0)), {1}, true);
  body.add_result("loss", reshape(g, sub(g, lse, picked), {R}));
  body.add_result("dlogits", cast(g, mul(g, sub(g, exp(g, sub(g, x, lse)), hit), scalar(g, 0.125)), kBF16));
}

// The same with a soft cap, as passes/classifier_softmax.h makes it.
inline void cross_entropy_capped(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  Softcap cap{3, 1, 4};
  auto tanh_of = [&](ValueId x) {  // softcap_tanh, with the constants of a body
    return tanh(g, mul(g, add(g, x, scalar(g, cap.shift)), scalar(g, cap.steepness())));
  };
  auto capped_of = [&](ValueId x) { return mul(g, tanh_of(x), scalar(g, cap.cap)); };
  ValueId logits = in(g, "logits", {R, C}, kBF16), target = reshape(g, in(g, "target", {R}, kI32), {R, 1});
  ValueId column = iota(g, {1, C}, 1), valid = less(g, column, scalar(g, double(C - C / 16)));
  ValueId least = scalar(g, -std::numeric_limits<double>::infinity());
  ValueId t = tanh_of(logits), capped = select(g, valid, mul(g, t, scalar(g, cap.cap)), least);
  ValueId top = capped_of(reduce_max(g, select(g, valid, logits, least), {1}, true));
  ValueId lse = add(g, log(g, reduce_sum(g, exp(g, sub(g, capped, top)), {1}, true)), top);
  ValueId hit = equal(g, column, target);
  ValueId picked = capped_of(reduce_sum(g, select(g, hit, logits, scalar(g, 0)), {1}, true));
  body.add_result("loss", reshape(g, sub(g, lse, picked), {R}));
  ValueId dcapped = mul(g, sub(g, exp(g, sub(g, capped, lse)), hit), scalar(g, 0.125));
  ValueId slope = mul(g, sub(g, scalar(g, 1), mul(g, t, t)), scalar(g, cap.cap * cap.steepness()));
  body.add_result("dlogits", cast(g, mul(g, dcapped, slope), kBF16));
}

// Gradients of x, gain and bias in one pass; with activations of one type, a row's operands are few enough to be loaded
// ahead.
inline void layer_norm_gradients(GraphBuilder& g, Graph& body, int64_t R, int64_t C, DType dtype, bool residual) {
  ValueId dy = cast(g, in(g, "dy", {R, C}, kBF16), kF32), x = in(g, "x", {R, C}, dtype);
  if (dtype != kF32) x = cast(g, x, kF32);
  ValueId gain = reshape(g, in(g, "gain", {C}), {1, C});
  ValueId mean = in(g, "mean", {R, 1}), rstd = in(g, "rstd_positive", {R, 1}), n = scalar(g, 1.0 / double(C));
  ValueId d = mul(g, dy, gain), x_hat = mul(g, sub(g, x, mean), rstd);
  ValueId sum = mul(g, reduce_sum(g, d, {1}, true), n), dot = mul(g, reduce_sum(g, mul(g, d, x_hat), {1}, true), n);
  ValueId dx = mul(g, sub(g, sub(g, d, sum), mul(g, x_hat, dot)), rstd);
  if (dtype != kF32) dx = cast(g, dx, dtype);
  body.add_result("dx", residual ? add(g, dx, in(g, "residual", {R, C}, dtype)) : dx);
  if (dtype != kF32) dx = cast(g, dx, kF32);
  body.add_result("dgain", reshape(g, reduce_sum(g, mul(g, dy, x_hat), {0}, true), {C}));
  body.add_result("dbias", reshape(g, reduce_sum(g, dy, {0}, true), {C}));
  body.add_result("ddx", reduce_sum(g, dx, {0}, true));
}

inline void layer_norm_gradient(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  layer_norm_gradients(g, body, R, C, kF32, true);
}
inline void layer_norm_gradient_low(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  layer_norm_gradients(g, body, R, C, kBF16, true);
}
inline void layer_norm_gradient_alone(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  layer_norm_gradients(g, body, R, C, kBF16, false);
}

inline void column(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = in(g, "a", {R, C}), b = in(g, "b", {R, C}), d = in(g, "d", {R, 1}), s = in(g, "s", {1, C});
  ValueId y = mul(g, sub(g, a, d), s);
  body.add_result("bias", reduce_sum(g, b, {0}, true));
  body.add_result("gain", reshape(g, reduce_sum(g, mul(g, y, b), {0}, true), {C}));
  body.add_result("top", reduce_max(g, y, {0}, true));
  body.add_result("rows", reduce_sum(g, add(g, d, constant(g, 0.5, {R, C})), {0}, true));
  body.add_result("y", y);
}
inline void column_types(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  ValueId a = cast(g, in(g, "a", {R, C}, kBF16), kF32);
  body.add_result("s", reduce_max(g, a, {0}, true));
  body.add_result("y", cast(g, mul(g, a, a), kBF16));
}
inline void bias_gradient(GraphBuilder& g, Graph& body, int64_t R, int64_t C) {
  body.add_result("db", reduce_sum(g, in(g, "dy", {R, C}, kF16), {0}, true));
}

}  // namespace bodies

inline std::vector<GroupCase> group_cases() {
  return {{"broadcasts", &op::flat, bodies::broadcasts},
          {"uniform_values", &op::flat, bodies::uniform_values},
          {"edges", &op::flat, bodies::edges},
          {"flat_types", &op::flat, bodies::flat_types},
          {"rounding", &op::flat, bodies::rounding},
          {"gelu_gradient", &op::flat, bodies::gelu_gradient},
          {"functions", &op::flat, bodies::functions},
          {"generators", &op::flat, bodies::generators},
          {"random_line", &op::flat, bodies::random_line},
          {"no_reduction", &op::row, bodies::no_reduction},
          {"one_reduction", &op::row, bodies::one_reduction},
          {"softmax_lse", &op::row, bodies::softmax_lse},
          {"layer_norm", &op::row, bodies::layer_norm},
          {"dropout_layer_norm", &op::row, bodies::dropout_layer_norm},
          {"row_mixture", &op::row, bodies::row_mixture},
          {"uniform_reductions", &op::row, bodies::uniform_reductions},
          {"causal_softmax", &op::row, bodies::causal_softmax},
          {"causal_softmax_gradient", &op::row, bodies::causal_softmax_gradient},
          {"row_types", &op::row, bodies::row_types},
          {"cross_entropy_both", &op::row, bodies::cross_entropy_both},
          {"cross_entropy_capped", &op::row, bodies::cross_entropy_capped},
          {"layer_norm_gradient", &op::row, bodies::layer_norm_gradient, 8192},
          {"layer_norm_gradient_low", &op::row, bodies::layer_norm_gradient_low, 8192},
          {"layer_norm_gradient_alone", &op::row, bodies::layer_norm_gradient_alone, 8192},
          {"sums_alone", &op::row, bodies::bias_gradient, 8192},
          {"column", &op::column, bodies::column},
          {"column_types", &op::column, bodies::column_types},
          {"bias_gradient", &op::column, bodies::bias_gradient}};
}

/// Single rows and columns, odd sizes, a warp and a block a row, many rows, a vocabulary, more than fits anywhere.
inline std::vector<Shape> group_spaces(const GroupCase& c) {
  std::vector<Shape> spaces = {{1, 1},     {1, 7},     {7, 1},     {3, 5},     {64, 64},
                               {2, 300},   {300, 3},   {130, 768}, {17, 1600}, {3, 5000},
                               {2, 20000}, {3, 50304}, {1, 50257}, {5000, 24}, {2, 262144}};
  std::erase_if(spaces, [&](const Shape& space) { return space[1] > c.max_cols; });
  return spaces;
}

}  // namespace tokamak::test
