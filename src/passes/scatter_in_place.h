// scatter_in_place: the gradient of a tied embedding is added onto the other gradient of the same table instead of into
// zeros of its own: one (V, C) buffer and two passes over it less.
//
//   %e = embedding_grad(%dy, %ids)
//   %s = add(%g, %e)                     ->      %s = embedding_grad(%dy, %ids, %g)
//
// Tolerance: the rows are added in another order. Tests: tests/passes/scatter_in_place_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool scatter_in_place(Graph& graph, const PassContext& context);

}  // namespace tokamak
