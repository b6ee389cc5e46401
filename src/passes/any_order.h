// any_order: lets the gradient of attention add its terms in whatever order they come, which some kernels gain from.
// Two runs then differ in their last bits. Off unless compile.deterministic is.
//
//   %5 = attention_grad(...)   ->   %5 = attention_grad(...) {any_order=true}
//
// It only decides; the backend's kernels obey, as far as they have two ways. Tests: tests/passes/any_order_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool any_order(Graph& graph, const PassContext& context);

}  // namespace tokamak
