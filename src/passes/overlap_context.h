// overlap_context: an order of the backward pass in which communication of attention over axis `context` runs beside
// other work. Of two layers, attention's gradient of the upper one first:
//
//   %1 = matmul(...)  for a weight         ... = context_attention_grad(...)
//   ... = context_attention_grad(...)      %2 = reduce_scatter(...)  of keys and values
//   %2 = reduce_scatter(...)          ->   %3 = all_gather(...)  of the layer below
//   ...                                    %1 = matmul(...)  for a weight, while %2 is under way
//   %3 = all_gather(...)                   ...
//   ... = context_attention_grad(..%3..)   ... = context_attention_grad(..%3..)
//
// What is gathered must be there since the forward pass. It decides the order of collectives, the same for all ranks.
// Exact. Tests: tests/passes/overlap_context_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool overlap_context(Graph& graph, const PassContext& context);

}  // namespace tokamak
