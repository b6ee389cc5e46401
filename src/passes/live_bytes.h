// Estimate of the memory that a graph's intermediate values need, from their lifetimes in node order alone. (The
// planner knows the exact number, but only after fusion; recomputation must be decided before.) Tests:
// tests/passes/choose_recompute_test.cpp
#pragma once

#include "graph/graph.h"

namespace tokamak {

/// The largest sum of bytes of values other than arguments that are alive at one node. Reshapes share their storage;
/// new values of parameters and states are written over the old ones. With `held` > 1, in a chunk of a pipeline: of so
/// many micro-batches, all but one of which keep what their backward pass reads, without what is made of parameters
/// alone.
int64_t peak_live_bytes(const Graph& graph, int64_t held = 1);

}  // namespace tokamak
