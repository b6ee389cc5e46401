// dropout: zeros at random, the rest scaled up.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef dropout;
}  // namespace op

ValueId dropout(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t random_stream);
/// Of matrices (..., rows, columns), numbered as attention's probabilities are. `place` is the attribute of
/// ops/element_place.h for the matrices.
ValueId dropout_of_matrices(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t random_stream,
                            std::vector<int64_t> place = {});

}  // namespace tokamak
