// The product of matrices.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef matmul;
}  // namespace op

/// op(a) (..., M, K) times op(b) (K, N) or (..., K, N) -> (..., M, N).
ValueId matmul(GraphBuilder& g, ValueId a, ValueId b, bool trans_a = false, bool trans_b = false);

}  // namespace tokamak
