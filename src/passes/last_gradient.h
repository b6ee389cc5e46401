// The last gradient that is added over ranks, behind which nothing is left that could hide it, unless products for
// weights come later than it. Tests: tests/passes/last_gradient_test.cpp.
#pragma once

#include "passes/pass.h"

#include <vector>

namespace tokamak {

struct LastGradient {
  int node = -1;             // the collective; -1: there is none that is larger than a bucket
  std::vector<bool> behind;  // by node: products to compute behind it
};

/// As many of the last products as take as long as it is sent, of those that take longer than to send what they give:
/// that is what is exposed then. `products` as find_weight_products gives them.
LastGradient find_last_gradient(const Graph& graph, const std::vector<std::vector<int>>& products,
                                const PassContext& context);

}  // namespace tokamak
