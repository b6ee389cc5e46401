// pad_vocab: rounds the vocabulary of the classifier up to a multiple that matmuls like.
//
// The head's weight (V, C) gets target.vocab_multiple * n >= V rows; `classes` of cross_entropy stays V, so that the
// new columns of the logits count as minus infinity: loss and gradients are unchanged, gradients of the new rows are 0.
// Fires for a parameter that only this matmul and embeddings read, when nothing but the loss (and an argmax beside it)
// sees the logits.
//
//   %w : f32[50257,768]                                    %w : f32[50304,768]
//   %l = matmul(%x, %w) {trans_b=true} : f32[8,50257]  ->  %l = matmul(%x, %w) {trans_b=true} : f32[8,50304]
//   cross_entropy(%l, %t) {classes=50257}                  cross_entropy(%l, %t) {classes=50257}
//
// A table that is only looked up gets rows that tensor ranks divide. The same numbers; but a library may add up a
// product of another size in another order. Tests: tests/passes/pad_vocab_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool pad_vocab(Graph& graph, const PassContext& context);

}  // namespace tokamak
