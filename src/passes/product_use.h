// What the products of a training step are for. Tests: tests/passes/product_use_test.cpp
#pragma once

#include "graph/graph.h"

#include <vector>

namespace tokamak {

/// kInputGradient: the backward pass reads it. kWeightGradient: only the update does, or who reads the results.
enum class ProductUse : uint8_t { kForward, kInputGradient, kWeightGradient };

/// By node, whatever it computes.
std::vector<ProductUse> find_product_uses(const Graph& graph);

}  // namespace tokamak
