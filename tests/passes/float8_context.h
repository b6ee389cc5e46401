// What the tests of float8_products share.
#pragma once

#include "ops/matmul.h"
#include "passes/pass.h"

#include <vector>

namespace tokamak::test {

/// A GPU on which a product's rate is all that counts.
inline PassContext in_fp8() {
  PassContext context;
  context.target.bf16_flops = 1e9;
  context.target.fp8_flops = 1.7e9;
  context.target.memory_bandwidth = 1e12;
  context.target.launch_seconds = 0;
  context.options.precision = Precision::kFp8;
  return context;
}

inline std::vector<const Node*> products_of(const Graph& graph) {
  std::vector<const Node*> found;
  for (const Node& node : graph.nodes())
    if (node.op == &op::matmul) found.push_back(&node);
  return found;
}

}  // namespace tokamak::test
