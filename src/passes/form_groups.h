// form_groups: gives every pointwise op, reduction and composite its kernel template.
//
// Each such node becomes a group of its own: flat, row or column (ops/group_form.h says what each may hold),
// composites by their decomposition; outputs that nobody reads are dropped. What fits no template stays a plain node.
//
//   %2 = add(%0, %1) : f32[2,3,4]     %0 : f32[2,3,4], %1 : f32[4]
//   ->
//   %2 = flat(%0, %1) : f32[2,3,4] {
//     %2 = reshape(%0) : f32[6,4]   %3 = reshape(%1) : f32[1,4]   %4 = add(%2, %3) : f32[6,4]
//     %5 = reshape(%4) : f32[2,3,4]
//   }
//
// Exact. Tests: tests/passes/form_groups_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool form_groups(Graph& graph, const PassContext& context);

}  // namespace tokamak
