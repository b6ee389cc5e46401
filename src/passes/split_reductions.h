// split_reductions: a reduction of many elements to few is one over the last dim, and then one of what that left.
//
//   %1 = reduce_sum(%0) {dims=[0,1,2], keep=true}         %1 = reduce_sum(%0) {dims=[2], keep=true} : f32[32,1024,1]
//      : f32[1,1,1]                                  ->   %2 = reshape(%1) {shape=[1,32768]}
//                                                         %3 = reduce_sum(%2) {dims=[1], keep=true}, and its shape
//
// A kernel works on each result by itself: of the gradient of a scalar that scales activations it would keep one of a
// GPU's multiprocessors busy, or one core. Within rounding, as a sum has another order. Tests:
// tests/passes/split_reductions_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool split_reductions(Graph& graph, const PassContext& context);

}  // namespace tokamak
