// overlap_halves: of a step in two halves (passes/halves.h), one computes while what the other sends is under way. Of
// each half the order stays; whose turn it is, is decided by what has come:
//
//   %1 = matmul(...)            of the first           %1 = matmul(...)
//   %2 = matmul(...)            of the second          %3 = reduce_scatter(%1)
//   %3 = reduce_scatter(%1)                     ->     %2 = matmul(...)      while %3 is under way
//   %4 = reduce_scatter(%2)                            %4 = reduce_scatter(%2)
//   %5 = layer_norm(%3, ...)                           %5 = layer_norm(%3, ...)
//
// Of two that can go on the one does that comes to its next message sooner. What both have gone into stands as early as
// it can; what is sent of it, gradients over other axes, stands behind the next gathering. The forward pass ends before
// the backward pass begins. It decides the order of collectives, the same for all ranks. Exact.
// Tests: tests/passes/overlap_halves_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool overlap_halves(Graph& graph, const PassContext& context);

}  // namespace tokamak
