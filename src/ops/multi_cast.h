// Many values cast in one node.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef multi_cast;
}  // namespace op

/// All values in this float type, in one node.
ValueIds multi_cast(GraphBuilder& g, ValueIds values, DType to);

}  // namespace tokamak
