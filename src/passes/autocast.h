// autocast: gives each product the number formats that the policy says (passes/format_policy.h), and lets what is
// around follow: bf16 (or f16) where it is fast, f32 where it matters, by the class that each op's record states.
//
// kLow ops (matmul, attention) get inputs in the types of their formats, cast once per value and type: a parameter once
// per step, which forward and backward pass share. What the types do not say, as TF32, becomes attributes. kFull ops
// (norms, softmax, loss, reductions, the optimizer) read what comes and compute in f32 inside, so nothing is cast for
// them; kFollow ops run in the widest type, except that a vector follows the low matrix that it is applied to, and a
// constant, or what a comparison gives, what it meets. Parameters, states, results and updates keep their types, and so
// do sums over ranks that are ordered: a rank adds what it has of the same terms in states.
//
// With compile.low_residual embeddings give the low type, and so the whole residual stream and its gradient are low, as
// in llm.c. Without it the residual stream is f32, as under PyTorch's autocast, and only what matmuls read is rounded.
//
//   %2 = matmul(%0, %1) : f32[8,4]        %2 = cast(%0) : bf16   %3 = cast(%1) : bf16
//   %3, .. = layer_norm(%2, %g)      ->   %4 = matmul(%2, %3) : bf16[8,4]
//                                         %5, .. = layer_norm(%4, %g) : bf16[8,4], ..
//
// Within rounding. Tests: tests/passes/autocast_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool autocast(Graph& graph, const PassContext& context);

}  // namespace tokamak
