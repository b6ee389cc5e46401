// merge_casts: the casts of parameters to bf16 or f16 become one kernel over all of them, at the start of the step.
//
//   %a = cast(p0) {to="bf16"}                             %a, %b = multi_cast(p0, p1) {to="bf16"}
//   %b = cast(reshape(p1)) {to="bf16"}, further down  ->  %c = reshape(%b), where the cast stood
//
// Copies that are read side by side alone are made so:
//
//   %c = concat(cast(p0), cast(p1)) {dim=0}           ->  %c = multi_cast(p0, p1) {joins=[2], to="bf16"}
//
// Only in graphs with a backward pass: there the copies of the weights live until it reads them, whether they are made
// together or one by one. Without one, each would otherwise die with its reader, and merging would keep them all. Casts
// of the backward pass or computed again stay where they are for the same reason, as do casts of anything but
// parameters, and those that passes/merge_float8.h does without. The parts of parameters that one collective gathers
// are cast by one kernel before it, in any graph, as are those that one concat puts side by side and those whose copies
// are kept in states. Exact. Tests: tests/passes/merge_casts_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool merge_casts(Graph& graph, const PassContext& context);

}  // namespace tokamak
