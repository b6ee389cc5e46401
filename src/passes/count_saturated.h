// count_saturated: in a graph with the result `saturated`, that is how many gradients became the largest e5m2, as they
// were too large for eight bits: with some luck they were just that large. What norms make, GELU of their products,
// logits' gradients and weights cannot be too large (float8_products).
//
//   %9 = cast(%8) {to="f8e5m2"}        ->   ... %10 = reduce_sum(less(57343, |%9|)) ...
//   result saturated = constant 0           result saturated = %10 + ..., of all ranks
//
// Exact, but for that result. Tests: tests/passes/count_saturated_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

inline constexpr std::string_view kSaturated = "saturated";

bool count_saturated(Graph& graph, const PassContext& context);

}  // namespace tokamak
