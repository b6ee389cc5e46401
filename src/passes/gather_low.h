// A value that is only read in a low float type is gathered in that type, at half the bytes:
//
//   %2 = all_gather(%1) : f32[8,4]                    %2 = cast(%1) {to="bf16"} : bf16[4,4]
//   %3 = cast(%2) {to="bf16"} : bf16[8,4]             %3 = all_gather(%2) : bf16[8,4]
//
// Test: tests/passes/gather_low_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool gather_low(Graph& graph, const PassContext& context);

}  // namespace tokamak
