// pad_heads: adds heads and hidden units of zeros that tensor ranks do not divide, so that each has as many.
//
// A parameter says in its spec what is apart in it and how much of that stays together (ArgumentSpec::unit): a head, or
// where keys are shared, the group of heads that share them; of the MLP a hidden unit. With 3 heads of 4 columns on 2
// ranks:
//
//   param w : f32[12,36] {blocks=3, unit=4}           param w {padding="1x3"} : f32[12,48]
//   %2 = matmul(%0, %1) : f32[2,8,36]            ->   %2 = matmul(%0, %1) : f32[2,8,48]
//   %3, %4 = attention(%2) {heads=3}                  %3, %4 = attention(%2) {heads=4}
//
// What is added is zero, gives zero to what adds it up, and has gradients of zero, so it stays zero: the same numbers,
// but for the order of sums and for which of attention's probabilities dropout takes. Tests:
// tests/passes/pad_heads_test.cpp, tests/mesh/padded_heads_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool pad_heads(Graph& graph, const PassContext& context);
/// For so many tensor ranks.
bool pad_heads(Graph& graph, int64_t ranks);

/// So many of `units` heads or hidden units as ranks that divide them compute with: of many with one column
/// each, where any are added, a multiple of 16 a rank, as matrices multiply.
int64_t padded_units(int64_t units, int64_t unit, int64_t ranks);

}  // namespace tokamak
