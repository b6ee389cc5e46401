// How fast a target computes a node, by what kind of work it is. Used by the planner and by choose_recompute.
#pragma once

#include "graph/op_def.h"
#include "graph/target.h"

namespace tokamak {

/// FLOP/s: attention at its own rate, matmuls by the type of their operands, all else at the pointwise rate.
double flop_rate(const Graph& graph, const Node& node, const Target& target);

}  // namespace tokamak
