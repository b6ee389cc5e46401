// dropout: zeros at random, the rest scaled up.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef dropout;
}  // namespace op

ValueId dropout(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t stream);

}  // namespace tokamak
