// What async_products and async_scatters share: the product of one block of rows, and where a rank stands.
// Tests: those of the two passes.
#pragma once

#include "graph/builder.h"
#include "graph/target.h"
#include "ops/matmul_form.h"

namespace tokamak {

/// Of a matmul or fused_matmul the product of one of `size` equal blocks of its rows, as op::row_block wants it. Null
/// where rows cannot be divided so (they are too few, transposed, of several matrices, made by a prologue, or added
/// up), and where a block is predicted to take not much longer than its launch.
std::shared_ptr<const Graph> product_block(const Graph& graph, const Node& product, int64_t size, const Target& target);

/// The graph's input that tells where a rank stands on the axis.
ValueId rank_coordinate(GraphBuilder& g, const std::string& axis);

/// The value that reshapes show.
ValueId behind_reshapes(const Graph& graph, ValueId value);

}  // namespace tokamak
