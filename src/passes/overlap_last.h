// overlap_last: the last gradient that is added over ranks, if it is a large one, is sent while products for weights
// are computed, which it would otherwise stand behind. That of a token embedding, which the backward pass has last:
//
//   %1 = matmul(...)  for a weight            %2 = ...
//   %3 = all_reduce(%1)                       %4 = embedding_grad(%2)
//   %2 = ...                            ->    %5 = all_reduce(%4)
//   %4 = embedding_grad(%2)                   %1 = matmul(...)  for a weight, while %5 is under way
//   %5 = all_reduce(%4)                       %3 = all_reduce(%1)
//
// As many of the last products move as take as long as it does, of those that take longer than to send what they give:
// that is what is exposed then.
// It decides the order of collectives, the same for all ranks. Exact. Tests: tests/passes/overlap_last_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool overlap_last(Graph& graph, const PassContext& context);

}  // namespace tokamak
