// join_projections: q, k and v of rotary positions as one product of their weights put side by side, forward and in
// both gradients, where the weights are copies in bf16 or f16 anyway and there are more tokens than columns.
//
//   %4 = matmul(%0, %1)   %5 = matmul(%0, %2)          %4 = concat(%1, %2, %3)
//   %6 = matmul(%0, %3)   %7 = rotary_qkv(%4, ...) ->  %5 = matmul(%0, %4)   %6 = packed_rotary(%5, ...)
//
//   %4, %5, %6 = rotary_qkv_grad(%0, ...)          ->  %4 = packed_rotary_grad(%0, ...)
//   %9 = add(add(matmul(%4, %1), ...), ...)            %9 = matmul(%4, concat(%1, %2, %3))
//   %10 = matmul(%4, %7)   %11 = ...                   %10 = slice(matmul(%4, %7))   %11 = ...
//
// Within rounding: the input's gradient is one sum. Behind shard, so that it is of what a rank has. Tests:
// tests/passes/join_projections_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool join_projections(Graph& graph, const PassContext& context);

}  // namespace tokamak
