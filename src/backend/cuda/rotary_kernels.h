// Device code of rotary_qkv and rotary_qkv_grad for one node; tests compile it without a GPU.
#pragma once

#include "graph/graph.h"

#include <string>

namespace tokamak::cuda {

/// The functions `rotary` and `rotary_grad`.
std::string rotary_source(const Graph& graph, const Node& node);

}  // namespace tokamak::cuda
