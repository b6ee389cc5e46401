// autocast: bf16 where it is fast, f32 where it matters, by the class that each op's record states.
//
// kLow ops (matmul, attention) get bf16 inputs, cast once per value, a parameter too; kFull ops (norms, softmax, loss,
// reductions) get f32 inputs; kAny ops (the optimizer, embedding_grad) take what comes and compute in f32; kFollow ops take what comes and run in the widest type, except that a vector
// follows the bf16 matrix that it is applied to. Parameters, states, results and updates keep their types.
//
//   %2 = matmul(%0, %1) : f32[8,4]        %2 = cast(%0) : bf16   %3 = cast(%1) : bf16
//   %3, .. = layer_norm(%2, %g)      ->   %4 = matmul(%2, %3) : bf16[8,4]
//                                         %5 = cast(%4) : f32    %6, .. = layer_norm(%5, %g)
//
// Within rounding. Tests: tests/passes/autocast_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool autocast(Graph& graph, const PassContext& context);

}  // namespace tokamak
