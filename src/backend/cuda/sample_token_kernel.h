// Device code of sample_token for one node; tests compile it without a GPU.
#pragma once

#include "graph/graph.h"

#include <string>

namespace tokamak::cuda {

/// The function `sample_token`. With `shared` a row of logits is kept in shared memory.
std::string sample_token_source(const Graph& graph, const Node& node, bool shared);

}  // namespace tokamak::cuda
