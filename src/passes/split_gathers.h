// Takes out of a program that runs several times in a step what gathers the parameters that ZeRO cuts, as a program of
// its own, "gather", which runs once before: what it gathers is left in states "gathered.<n>" of Role::kActivation.
//
//   param w = %0 {cuts="data:2@0"}       gather:                      micro_batch:
//   %2 = cast(%0)                          %2 = cast(%0)                state gathered.0 = %1
//   %3 = all_gather(%2)            ->      %3 = all_gather(%2)          ... = f(%1)
//   ... = f(%3)                            update gathered.0 = %3
//
// Tests: tests/passes/split_gathers_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

struct SplitGathers {
  Graph rest, gather;
};

/// Collectives may be joined already (passes/bucket.h). Where nothing is gathered, `gather` has no nodes.
SplitGathers split_gathers(const Graph& graph);

}  // namespace tokamak
