// async_products (mesh.async_tensor): a product of rows that the ranks of `tensor` gather begins with the rank's own
// rows, while the others' are on their way, and goes on with theirs in its place (ops/row_block.h). Several products of
// one gather all begin before the first of them goes on. Only what is a product's own changes: of bias, functions and
// stored operands each block takes its rows. Products with sums over all rows keep their form, and so do those of few
// rows. Within rounding: a library may choose another kernel for a block. Which products are divided depends on their
// sizes alone, not on what was measured, so that a run that goes on has the same bits.
// Tests: tests/passes/async_products_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool async_products(Graph& graph, const PassContext& context);

}  // namespace tokamak
