// Device code of packed_gate and packed_gate_grad for one node; tests compile it without a GPU.
#pragma once

#include "graph/graph.h"

#include <string>

namespace tokamak::cuda {

/// The functions `packed_gate` and `packed_gate_grad`.
std::string packed_gate_source(const Graph& graph, const Node& node);

}  // namespace tokamak::cuda
