// decompose_context: writes attention of a rank's rows of a sequence for which the backend has no kernel, or none that
// is better, as ordinary attention of pairs of chunks.
//
//   %1, %2 = context_attention(%0, %kv, %r)   ->   slice, concat, select, attention x 3, exp, mul, add, ...
//
// Runs after autocast, as kernels are for types. Tests: tests/passes/decompose_context_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool decompose_context(Graph& graph, const PassContext& context);

}  // namespace tokamak
