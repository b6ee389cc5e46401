// attention_float8: what products in eight bits read of attention, and of its gradient, attention's kernels write so;
// of the gradient, where nothing reads 16 bits.
//
//   %1 = attention_grad(...) : bf16
//   %2 = cast(%1) : f32                     ->   %1 = attention_grad(..., %factor) {..., float8=true} : f8e5m2
//   %3 = mul(%2, %factor) : f32
//   %4 = cast(%3) : f8e5m2
//
//   %1, %2 = attention(...) : bf16, f32     ->   %1, %2, %5 = attention(..., %factor) {..., float8=true} : .., f8e4m3
//   %3 = cast(%1) : f32  ..
//
// Only where the target has kernels for it: a pass over each less. Behind attention_sums, so that sums are no readers.
// Tests: tests/passes/attention_float8_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool attention_float8(Graph& graph, const PassContext& context);

}  // namespace tokamak
