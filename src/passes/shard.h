// Makes of a step the share of one rank of a mesh: docs/parallel.md.
//
//   param w : f32[8,4]               with data:2@0 cutting x      param w : f32[8,4]
//   input x : f32[6,8]                                            input x {cuts="data:2@0"} : f32[3,8]
//   %2 = matmul(x, w)                                             %2 = matmul(x, w) : f32[3,4]
//   %3 = reduce_sum(%2) : f32[]                                   %3 = reduce_sum(%2) : f32[]
//                                                                 %4 = all_reduce(%3) {axis="data", ...} : f32[]
//
// An all_reduce that is in the graph already says that its input is a term on each rank of the axis: it is placed as
// other sums are, and may become a reduce_scatter. So a graph in which ranks have inputs of their own sums over slots.
// A redistribute says where a value should lie, and is obeyed and removed.
//
// The graph that comes out has no rank in it: a rank's coordinates are inputs ("rank.data", i32[]), where it needs
// them. Tests: tests/passes/shard_test.cpp, tests/passes/shard_random_test.cpp.
#pragma once

#include "passes/pass.h"

#include <map>

namespace tokamak {

/// By argument; those that are not there are whole.
using ArgumentCuts = std::map<ValueId, std::vector<Cut>>;

/// By value: how what is a sum over ranks should lie once it is added up, where that costs no more.
using SumCuts = std::map<ValueId, std::vector<Cut>>;

/// The graph with its arguments cut so: shapes shrink to a rank's share, and where a value lies otherwise than its
/// reader needs, a collective is appended. Results are whole on every rank, updates cut as what they update. It
/// computes what the graph does, but for the order of sums; with `ordered` the update adds over no axis that ZeRO cuts
/// but where an all_reduce of the graph says so; with `gathers_once` the backward pass reads the parameters that the
/// forward pass gathered. UserError when an argument cannot be cut so.
Graph shard_graph(const Graph& graph, const Mesh& mesh, const ArgumentCuts& cuts, const SumCuts& sums = {},
                  bool ordered = false, bool gathers_once = false);

/// The same, with the cuts that the arguments' roles ask for (passes/seed_cuts.h).
bool shard(Graph& graph, const PassContext& context);

}  // namespace tokamak
