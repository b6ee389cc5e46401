// low_parameters: a parameter that is only read as bf16 or f16 is stored as that, where the caller allows it
// (PassContext::low_parameters): what generation reads for every token is half as large, and no cast is left.
//
//   param w = %0 : f32[8,8]                          param w = %0 : bf16[8,8]
//   %2 = cast(%0) {to="bf16"} : bf16[8,8]       ->   %2 = matmul(%1, %0)
//   %3 = matmul(%1, %2)
//
// A parameter that the graph updates, or gives as a result, stays. Exact. Tests: tests/passes/low_parameters_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool low_parameters(Graph& graph, const PassContext& context);

}  // namespace tokamak
