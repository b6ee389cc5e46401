// attention_sums: the gradient of attention also gives its sums, which are the gradient of the bias of q, k and v.
//
//   %1 = attention_grad(...)                     %1, %2 = attention_grad(...) {..., sums=true}
//   %2 = reduce_sum(%1) {dims=[0,1], ...}   ->   %3 = reshape(%2), where the sum stood
//
// Only where the target has a kernel for it, so that dqkv is read once less. Tolerance: the terms are added in another
// order, and the kernel may leave out what is zero but for rounding. Tests: tests/passes/attention_sums_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool attention_sums(Graph& graph, const PassContext& context);

}  // namespace tokamak
