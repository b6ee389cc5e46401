// merge_adds: sums of states, and vectors that are added to states, become one kernel over all of them.
//
//   state a0 = %0, b0 = %1, c0 = %2, a1 = %3, b1 = %4, c1 = %5
//   %6 = add(%0, %1), %7 = add(%2, %6)                       %6, %7 = multi_add(%0, %3, %1, %4, %2, %5) {terms=3}
//   %8 = add(%3, %4), %9 = add(%5, %8)                 ->
//
// Of what one collective reads there is one kernel, so that it need not wait for others. Matrices that are added to
// states stay: the matmul that makes them adds. Slices of one, which several states have parts of, are added where they
// are made, so that it need not be kept until the end. Exact, as an addition is the same whatever comes first. Tests:
// tests/passes/merge_adds_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool merge_adds(Graph& graph, const PassContext& context);

}  // namespace tokamak
