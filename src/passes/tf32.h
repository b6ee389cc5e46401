// tf32: marks the f32 matmuls and attention that may run in TF32: operands rounded to 10 bits of mantissa, sums in f32.
//
//   %2 = matmul(%0, %1) : f32[8,4]   ->   %2 = matmul(%0, %1) {tf32=true} : f32[8,4]
//
// It only decides; the backend's kernels and ops/flop_rate.h obey. It runs before groups are formed, whose bodies keep
// the attribute. A target without such units (tf32_flops = 0) gets none. Tests: tests/passes/tf32_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool tf32(Graph& graph, const PassContext& context);

}  // namespace tokamak
