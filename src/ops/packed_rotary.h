// rotary_qkv and its gradient (ops/rotary.h) with q, k and v side by side in the columns of one matrix, as one product
// gives and takes them. Without groups both are as large as attention's packed projection and take its place in memory;
// then v, which is not turned, is neither read nor written. Tests: tests/ops/rotary_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef packed_rotary, packed_rotary_grad;
}  // namespace op

/// What stands for a node of rotary_qkv or rotary_qkv_grad, of `graph`: its result of `from`, such a matrix (B, T, (H +
/// 2 K) D), or its gradient as such a matrix, of `from` = dqkv.
ValueId packed_rotary(GraphBuilder& g, const Graph& graph, const Node& node, ValueId from, ValueId positions);

}  // namespace tokamak
