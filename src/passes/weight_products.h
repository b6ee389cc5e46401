// Matrix products of the backward pass that give gradients of parameters: nothing of the pass reads what becomes of
// them, so they may be computed later, beside communication. Tests: tests/passes/weight_products_test.cpp.
#pragma once

#include "graph/graph.h"

#include <vector>

namespace tokamak {

/// By node: such a product, and behind it views, casts and collectives on the way to the update, in order; empty for
/// all other nodes.
std::vector<std::vector<int>> find_weight_products(const Graph& graph);

}  // namespace tokamak
