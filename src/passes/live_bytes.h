// Estimate of the memory that a graph's intermediate values need, from their lifetimes in node order alone. (The
// planner knows the exact number, but only after fusion; recomputation must be decided before.) Tests:
// tests/passes/choose_recompute_test.cpp
#pragma once

#include "graph/graph.h"

namespace tokamak {

/// The largest sum of bytes of values other than arguments that are alive at one node. Reshapes share their storage;
/// new values of parameters and states are written over the old ones.
int64_t peak_live_bytes(const Graph& graph);

}  // namespace tokamak
