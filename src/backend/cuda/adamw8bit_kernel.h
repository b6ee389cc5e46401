// Device code of adamw8bit; tests compile it without a GPU.
#pragma once

#include "graph/graph.h"

#include <string>

namespace tokamak::cuda {

/// The function `adamw8bit` with the node's constants, type of gradient and length of blocks.
std::string adamw8bit_source(const Graph& graph, const Node& node);

}  // namespace tokamak::cuda
