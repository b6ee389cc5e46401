// choose_recompute: marks forward nodes #recompute until what the step keeps alive fits options.memory_budget_gib.
//
// Only values that the forward pass saves for the backward pass count, never results or updates. Those that free most
// bytes per second of recomputation come first: GELU and norms before attention and matmuls. When nothing fits, the
// choice that needs least memory is taken. options.recompute names what is marked instead: selective, all that takes no
// matrix product, no attention and no collective; full, all but every second sum of computed values, with which blocks
// end.
//
//   %1 = gelu(%0)   ->   %1 = gelu(%0) #recompute
//
// It only decides; apply_recompute obeys. Tests: tests/passes/choose_recompute_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool choose_recompute(Graph& graph, const PassContext& context);

}  // namespace tokamak
