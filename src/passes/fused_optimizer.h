// fused_optimizer: all AdamW updates with the same scalars, constants and type of states become one kernel over all
// their tensors.
//
//   adamw(p0, g0, m0, v0, lr, scale, step)          multi_adamw(lr, scale, step, p0, g0, m0, v0, p1, g1, m1, v1)
//   adamw(p1, g1, m1, v1, lr, scale, step)    ->      {decayed=[1,0]}, in place of the last of them
//
// One decay other than zero per kernel: tensors with another one form another kernel. One tensor alone becomes one,
// too, so that no bit depends on how many a rank updates. Where its outputs are read by more than updates, as
// parameters are that are gathered from their parts, a kernel is over as many tensors as fit into one bucket
// (mesh.bucket_mib), so that they are gathered beside the next kernel. Exact. Tests:
// tests/passes/fused_optimizer_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool fused_optimizer(Graph& graph, const PassContext& context);

}  // namespace tokamak
