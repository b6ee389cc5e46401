// view_slices: slices that lie in one piece are shown where they are, not copied.
//
//   %1 = slice(%0) {begin=0, dim=0, size=2}           %1 = slice_view(%0) {begin=0, dim=0, size=2}
//   %2 = slice(%0) {begin=2, dim=0, size=2}    ->     %2 = slice_view(%0) {begin=2, dim=0, size=2}
//
// Of values whose slices are together all of them, and of arguments: of others a view would keep more memory than a
// copy. Exact. Tests: tests/passes/view_slices_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool view_slices(Graph& graph, const PassContext& context);

}  // namespace tokamak
