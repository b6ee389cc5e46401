// fuse_prologues: a row group whose result one matmul alone reads, as its left operand, becomes part of it: a norm with
// the sums before it, in generation. What else the group makes the matmul stores too.
//
//   %1, %2 = row { add, layer_norm }, %3 = fused_matmul(%2, w)   ->   %1, %3 = fused_matmul { row { ... }, matmul }
//
// The matmul may read it in another shape. Only where target.matmul_prologue says so and kernels->takes_matmul the
// whole. Within rounding: the sums along a row may be made in another order. Expects what fuse has left. Tests:
// tests/passes/fuse_prologues_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool fuse_prologues(Graph& graph, const PassContext& context);

}  // namespace tokamak
