// The sizes of a matmul node: batch of (M, K) times (K, N). A 2-d second operand is shared by the whole batch, which
// then counts as rows: batch = 1, M = all rows.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

struct MatmulDims {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Shape output;
};

/// Throws UserError "[matmul] ..." when the operands do not fit.
MatmulDims matmul_dims(const NodeSpec& spec);

}  // namespace tokamak
