// eliminate_common_subexpressions: nodes that compute the same from the same values become one.
//
//   %2 = add(%0, %1)   %3 = add(%0, %1)   %4 = mul(%2, %3)   ->   %2 = add(%0, %1)   %3 = mul(%2, %2)
//
// All ops without effects are pure (random numbers are functions of their key), so all may merge, except nodes marked
// #recompute, whose point is to be computed twice, and groups.
// Exact. Tests: tests/passes/eliminate_common_subexpressions_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool eliminate_common_subexpressions(Graph& graph, const PassContext& context);

}  // namespace tokamak
