// eliminate_dead_code: removes nodes without effects that no result and no update depends on. Arguments stay, read or
// not.
//
//   %1 = exp(%0)   %2 = neg(%0)   result y = %2   ->   %1 = neg(%0)   result y = %1
//
// Exact. Tests: tests/passes/eliminate_dead_code_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool eliminate_dead_code(Graph& graph, const PassContext& context);

}  // namespace tokamak
