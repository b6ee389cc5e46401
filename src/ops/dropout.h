// dropout: zeros at random, the rest scaled up.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef dropout;
}  // namespace op

ValueId dropout(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t stream);
/// Of matrices (..., rows, columns), with the numbers of base/matrix_random.h, as attention does by itself; p is
/// rounded to a multiple of 2^-15.
ValueId dropout_of_matrices(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t stream);

}  // namespace tokamak
