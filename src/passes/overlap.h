// overlap: a list scheduler of the backward pass, in which kernels run while ranks send to each other. The chain of
// gradients keeps its order; products for weights, which only the update waits for, are free to come later:
//
//   %1 = matmul(...)  for a weight             %3 = reduce_scatter(%2)
//   %3 = reduce_scatter(%2)                    %1 = matmul(...)  for a weight, while %3 is under way
//   %4 = matmul(...)  for a weight      ->     %5 = layer_norm_grad(%3, ...)
//   %5 = layer_norm_grad(%3, ...)              %6 = all_gather(%5)
//   %6 = all_gather(%5)                        %4 = matmul(...)  for a weight, while %6 is under way
//   %7 = matmul(%6, ...)                       %7 = matmul(%6, ...)
//
// What may wait for what, and what must not be late:
// - A product waits until the chain waits for a message. At most four wait at a time, as they keep their operands in
//   memory. Of those the next one is taken that lasts long enough.
// - What products give is sent over other axes when the residual stream has next been gathered, not before it.
// - What is gathered of the forward pass (keys and values of attention over axis `context`) comes one layer ahead: when
//   the gradients of the layer above have been sent.
// - The last gradient of all, if it is larger than a bucket, is that of a token embedding, which the backward pass has
//   last. As many of the last products as take as long as it is sent may wait to stand behind it
//   (passes/last_gradient.h).
//
// It decides the order of collectives, the same for all ranks. Exact. Tests: tests/passes/overlap_test.cpp,
// overlap_step_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool overlap(Graph& graph, const PassContext& context);

}  // namespace tokamak
