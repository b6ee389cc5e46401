// async_scatters (mesh.async_tensor): a product whose sum over the ranks of `tensor` is divided among them along its
// rows is computed in blocks (ops/row_block.h). What is another rank's goes there while the next block is computed, the
// rank's own comes last, and what has come from others is added to it, by the kernel that reads it where passes behind
// this one fuse the sum. On two ranks to the bit what reduce_scatter gives, on more within rounding: each rank adds in
// another order, rounded once. Ordered sums keep their form, and so do products of few rows.
// Tests: tests/passes/async_scatters_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool async_scatters(Graph& graph, const PassContext& context);

}  // namespace tokamak
