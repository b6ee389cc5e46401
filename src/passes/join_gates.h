// join_gates: gate and up of an MLP with a gate as one product of their weights put side by side, forward and in both
// gradients, where the weights are copies in bf16 or f16 anyway, there are more tokens than columns, and the backend
// has a kernel of the unit on such a matrix.
//
//   %3 = matmul(%0, %1)   %4 = matmul(%0, %2)          %3 = concat(%1, %2)
//   %6 = mul(silu(%3), %4)                        ->   %4 = matmul(%0, %3)   %6 = packed_gate(%4)
//
//   %8 = silu_grad(%3, mul(%7, %4))                    %8 = packed_gate_grad(%7, %4)
//   %9 = mul(%7, silu(%3))                        ->   %11 = matmul(%8, %3)
//   %11 = add(matmul(%8, %1), matmul(%9, %2))          %12 = slice(matmul(%8, %0))   %13 = ...
//   %12 = matmul(%8, %0)   %13 = ...
//
// Within rounding: the input's gradient is one sum, and silu(gate) is not rounded before it is multiplied. Behind
// shard, so that it is of what a rank has: with tensor ranks the halves of the matrix are the rank's shares of gate and
// up. Not in a step in eight bits, whose products float8_products chooses one by one. Tests:
// tests/passes/join_gates_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool join_gates(Graph& graph, const PassContext& context);

}  // namespace tokamak
