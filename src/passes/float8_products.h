// float8_products: with compile.precision=fp8, products of a weight get operands of eight bits, where the range of the
// other operand is known and the price says that this pays with the casts that it causes: forward those of a norm's
// result (e4m3), backward those of the residual stream's gradient (e5m2), as the norms' kernels leave it, and all three
// of the classifier. What GELU makes, and what activation functions and gates make of a gradient, has eight bits alone,
// where all products that read it can, weights' gradients among them. All else stays as autocast left it.
//
// No state is needed, so that a step's bits depend on nothing but its parameters and its data:
// - of a norm's result y = n * gain + bias, |n| is at most sqrt(width), so that no element of y is larger than
//   sqrt(width) max|gain| + max|bias|. What is that large becomes 448, the largest e4m3; nothing ever overflows.
// - the gradient of the residual stream is counted in that of a row's loss, 1 / number of counted tokens, which becomes
//   256; a graph without the loss takes the loss's weight. This is no bound: what is more than 224 times as large
//   becomes the largest e5m2, with its sign.
// - of the logits' gradient no element is larger than that of their row's loss, which becomes the largest e5m2.
// - GELU of a norm's product is at most the longest row times the longest column, by Cauchy and Schwarz, and the bias.
//   With compile.fp8_attention so is what attention gives, a mean of such a product's rows; and attention's gradient is
//   counted as the residual stream's is. Both are copies, which attention's kernels write where they can
//   (passes/attention_float8.h).
// - of a weight the largest element is looked for in each step. A matrix is stored with its sums along rows, as the
//   tensor cores want both operands.
//
//                                      %s = mul(27.7, reduce_max(|%gain|)) ..            the scale of y, times 448
//                                      %5 = cast(mul(%y, div(448, %s))) : f8e4m3
//   %4 = matmul(%y, %w) : bf16    ->   %6, %scale_w = float8_weights(%w) : f8e4m3, transposed
//                                      %4 = matmul(%5, %6, %scale_y, %scale_w) {trans_b, result="bf16"} : bf16
//
// What only such products read is gathered over ranks in eight bits. The classifier takes such operands beside its own.
// Casts are one with the norms' kernels (fuse). Which products: passes/float8_choice.h.
// Within rounding. Tests: tests/passes/float8_products_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool float8_products(Graph& graph, const PassContext& context);

}  // namespace tokamak
