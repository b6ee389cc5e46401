// join_pads: what slices of one value get as gradients is one concat instead of a sum of tensors that are mostly zeros:
// the q, k and v of a packed projection, for one.
//
//   %a = pad(%x) {dim=2, before=0, after=8}
//   %b = pad(%y) {dim=2, before=4, after=4}
//   %c = pad(%z) {dim=2, before=8, after=0}
//   %d = add(%a, %b)
//   %e = add(%d, %c)                           ->      %e = concat(%x, %y, %z) {dim=2}
//
// eliminate_dead_code then removes the pads. The same but for the sign of zeros (-0 + 0 is 0). Tests:
// tests/passes/join_pads_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool join_pads(Graph& graph, const PassContext& context);

}  // namespace tokamak
