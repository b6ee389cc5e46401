// Adafactor (Shazeer & Stern, "Adafactor: Adaptive learning rates with sublinear memory cost", 2018), in PyTorch's
// form: the mean squares of a matrix's gradient are kept as those of its rows and columns, there is no first moment,
// and the learning rate is a share of the parameter's own size.
//   b = step^-0.8; rows = (1-b) rows + b mean of g^2 over columns; columns the same over rows
//   v = rows columns / mean(rows), of vectors (1-b) v + b g^2; u = g / sqrt(max(v, eps^2))
//   param = param (1 - lr decay) - max(1e-3, rms(param)) min(lr, 1 / sqrt(step)) u / max(1, rms(u))
#include "autodiff/optimizer_rule.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <cmath>

namespace tokamak {
namespace {

constexpr double kEps = 0x1p-23, kLeastSize = 1e-3, kDecayPower = -0.8;  // PyTorch's defaults in f32

ValueType one_of_each_row(const ValueType& parameter, const ArgumentSpec&) {
  return {DType::kF32, {parameter.shape[0]}};
}
ValueType one_of_each_column(const ValueType& parameter, const ArgumentSpec&) {
  return {DType::kF32, {parameter.shape[1]}};
}

constexpr OptimizerState kMatrixStates[] = {{"adafactor.rows", one_of_each_row},
                                            {"adafactor.columns", one_of_each_column}};
constexpr OptimizerState kVectorStates[] = {{"adafactor.v"}};

// The root of the mean square of a tensor, which has `count` elements in the model.
ValueId rms(GraphBuilder& g, ValueId tensor, double count) {
  return mul(g, sqrt(g, sum_squares(g, {tensor})), constant(g, 1 / std::sqrt(count)));
}

// (1 - share) old + share mean, where `sum` is of `count` terms.
ValueId next_mean(GraphBuilder& g, ValueId old, ValueId sum, double count, ValueId share) {
  ValueId kept = sub(g, constant(g, 1), share);
  return add(g, mul(g, old, kept), mul(g, sum, mul(g, share, constant(g, 1 / count))));
}

// The new parameter, from an estimate of the gradient's mean squares.
ValueId stepped(GraphBuilder& g, const ParameterUpdate& u, ValueId grad, ValueId squares, const OptimizerConfig& c) {
  auto count = double(num_elements(g.graph().argument_of(u.parameter)->spec.global));
  ValueId direction = mul(g, grad, rsqrt(g, maximum(g, squares, constant(g, kEps * kEps))));
  ValueId size = maximum(g, constant(g, kLeastSize), rms(g, u.parameter, count));
  ValueId rate = mul(g, size, minimum(g, u.lr, rsqrt(g, u.step)));
  ValueId step = mul(g, direction, div(g, rate, maximum(g, constant(g, 1), rms(g, direction, count))));
  return unless_skipped(g, u, u.parameter, sub(g, decayed(g, u, step, c), step));
}

ValueIds update_matrix(GraphBuilder& g, const ParameterUpdate& u, const OptimizerConfig& c) {
  const Shape global = g.graph().argument_of(u.parameter)->spec.global;
  auto rows = double(global[0]), columns = double(global[1]);
  ValueId grad = mul(g, u.grad, u.scale), square = mul(g, grad, grad);
  ValueId share = pow(g, u.step, constant(g, kDecayPower));
  ValueId of_rows = next_mean(g, u.states[0], reduce_sum(g, square, {1}, false), columns, share);
  ValueId of_columns = next_mean(g, u.states[1], reduce_sum(g, square, {0}, false), rows, share);
  ValueId mean = mul(g, reduce_sum(g, of_rows, {0}, false), constant(g, 1 / rows));
  ValueId of_row = div(g, of_rows, maximum(g, mean, constant(g, kEps)));
  ValueId squares = mul(g, reshape(g, of_row, {g.shape(of_row)[0], 1}), of_columns);
  return {stepped(g, u, grad, squares, c), unless_skipped(g, u, u.states[0], of_rows),
          unless_skipped(g, u, u.states[1], of_columns)};
}

ValueIds update_vector(GraphBuilder& g, const ParameterUpdate& u, const OptimizerConfig& c) {
  ValueId grad = mul(g, u.grad, u.scale), share = pow(g, u.step, constant(g, kDecayPower));
  ValueId squares = next_mean(g, u.states[0], mul(g, grad, grad), 1, share);
  return {stepped(g, u, grad, squares, c), unless_skipped(g, u, u.states[0], squares)};
}

constexpr OptimizerRule kVectorRule = {
    .name = "adafactor", .states = kVectorStates, .update = update_vector, .whole = true};

const OptimizerRule* vector_rule(const Argument& parameter) {
  return parameter.spec.global.size() == 2 ? nullptr : &kVectorRule;
}

}  // namespace

constexpr std::string_view kOptions[] = {"cautious_decay"};

// Whole, so that sums over a matrix have the same bits on any number of data ranks.
constinit const OptimizerRule adafactor_rule = {.name = "adafactor",
                                                .states = kMatrixStates,
                                                .update = update_matrix,
                                                .other_rule = vector_rule,
                                                .whole = true,
                                                .same_rate = true,
                                                .options = kOptions};

}  // namespace tokamak
