// apply_recompute: computes forward values marked #recompute again where the backward pass first reads them.
//
//   %1 = gelu(%0) #recompute                        %1 = gelu(%0) #recompute
//   ...                                        ->   ...
//   %9 = matmul(%1, %8) #backward                   %9 = gelu(%0) #backward #recompute
//                                                   %10 = matmul(%9, %8) #backward
//
// Marked producers of a marked node are computed again before it, each once; reshapes of marked values count as marked.
// Nodes with effects are not, marked or not, but for what tensor ranks send each other; but a parameter that ZeRO cuts
// and that what is computed again reads is gathered again for it, once for the backward pass, so that its copy need not
// be kept; unless both passes are to share one (PassContext::gathers_once). Exact. Tests:
// tests/passes/apply_recompute_test.cpp, tests/run/same_bits_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool apply_recompute(Graph& graph, const PassContext& context);

/// The graph that it makes where these nodes are marked, too.
Graph with_recomputed(const Graph& graph, const PassContext& context, const std::vector<bool>& nodes);

/// Whether a node may be computed again where it is marked. Of nodes with effects those collectives may that the ranks
/// of axis tensor do for activations: all of them do so at the same place of the same graph.
bool may_be_again(const Node& node);

}  // namespace tokamak
