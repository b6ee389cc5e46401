// float8_products: with compile.precision=fp8, forward products of a norm's result and a weight get operands of eight
// bits (e4m3), where the price says that this pays with the casts that it causes; all else stays as autocast left it.
// The backward pass reads the bf16 operands.
//
// No state is needed, so that a step's bits depend on nothing but its parameters and its data:
// - of a norm's result y = n * gain + bias, |n| is at most sqrt(width), so that no element of y is larger than
//   sqrt(width) max|gain| + max|bias|. What is that large becomes 448, the largest e4m3; nothing ever overflows.
// - of a weight the largest element is looked for in each step. A matrix is stored with its sums along rows, as the
//   tensor cores want both operands.
//
//                                      %s = mul(27.7, reduce_max(|%gain|)) ..            the scale of y, times 448
//                                      %5 = cast(mul(%y, div(448, %s))) : f8e4m3
//   %4 = matmul(%y, %w) : bf16    ->   %6 = transpose(cast(mul(%w, div(448, reduce_max(|%w|))))) : f8e4m3
//                                      %4 = matmul(%5, %6, %scale_y, %scale_w) {trans_b, result="bf16"} : bf16
//
// The classifier takes such operands beside its own for the logits. Casts of y are one with the norm (fuse).
// Within rounding. Tests: tests/passes/float8_products_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool float8_products(Graph& graph, const PassContext& context);

}  // namespace tokamak
