// chunked_classifier: logits, loss and their gradients become one node that works on a chunk of rows at a time, so that
// (R, V) logits are never stored. Where the target has a kernel for it.
//
//   %4 = matmul(%x, %W) {trans_b=true}
//   %5, %6 = cross_entropy(%4, %t)                  %5, %7, %8, %scratch = classifier(%x, %W, %t, %d)
//   %d = ...                                   ->
//   %g = cross_entropy_grad(%4, %t, %6, %d)
//   %7 = matmul(%g, %W)
//   %8 = matmul(%g, %x) {trans_a=true}
//
// Fires when nothing else reads logits, lse and their gradient, and %d (the gradient of the losses) does not depend on
// the losses: what makes it, constants and a loss scale that is a state, moves before the node. Where ZeRO has %W
// gathered once for each pass, the first gathering serves both. The gradient of W is
// f32 whatever the precision. Runs before autocast. After "Cut Your Losses in Large-Vocabulary Language Models"
// (Wijmans et al., 2024), with the logits of a chunk in memory. Tests: tests/passes/chunked_classifier_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool chunked_classifier(Graph& graph, const PassContext& context);

/// Bytes of a chunk's logits, at most: with a small memory budget fewer.
double most_logit_bytes(const CompileConfig& options);

/// Rows of a chunk for `rows` rows of `row_bytes` each: at most `limit_bytes` of them but 2048 rows where there are so
/// many; a divisor of `rows` where a multiple of 256 is one, else chunks of about the same size.
int64_t choose_chunk(int64_t rows, int64_t row_bytes, double limit_bytes);

}  // namespace tokamak
