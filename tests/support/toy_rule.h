// An optimizer's rule that is nowhere but in tests, with all that a rule may ask for: it updates matrices, each from
// all of it, keeps a state of another shape and type, and leaves tables and vectors to AdamW.
#pragma once

#include "autodiff/optimizer_rule.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/matmul.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tokamak::test {

inline ValueType one_of_each_row(const ValueType& parameter, const ArgumentSpec&) {
  return {DType::kBF16, {parameter.shape[0]}};
}

inline constexpr OptimizerState kToyStates[] = {{"toy.m"}, {"toy.rows", one_of_each_row}};

/// m = m / 2 + g, rows = rows / 2 + the squares of g's rows, and param -= lr m (m^T m) / (1 + |m (m^T m)|).
inline ValueIds update_by_toy_rule(GraphBuilder& g, const ParameterUpdate& u, const OptimizerConfig&) {
  ValueId half = constant(g, 0.5), grad = mul(g, cast(g, u.grad, DType::kF32), u.scale);
  ValueId m = add(g, mul(g, u.states[0], half), grad);
  ValueId rows = add(g, mul(g, cast(g, u.states[1], DType::kF32), half), reduce_sum(g, mul(g, grad, grad), {1}, false));
  ValueId cubed = matmul(g, m, matmul(g, m, m, true, false));
  ValueId length = add(g, constant(g, 1), sqrt(g, sum_squares(g, {cubed})));
  ValueId parameter = sub(g, u.parameter, mul(g, div(g, cubed, length), u.lr));
  return {unless_skipped(g, u, u.parameter, parameter), unless_skipped(g, u, u.states[0], m),
          unless_skipped(g, u, u.states[1], cast(g, rows, DType::kBF16))};
}

inline const OptimizerRule* adamw_but_for_matrices(const Argument& parameter) {
  Role role = parameter.spec.role;
  bool is_inner_matrix = role == Role::kMatrix || role == Role::kColumn || role == Role::kRow;
  return is_inner_matrix ? nullptr : &adamw_rule;
}

inline const OptimizerRule kToyRule{.name = "toy",
                                    .states = kToyStates,
                                    .update = update_by_toy_rule,
                                    .other_rule = adamw_but_for_matrices,
                                    .whole = true};

}  // namespace tokamak::test
