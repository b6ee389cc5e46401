// Rows of a table by number, and the gradient of the table.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef embedding, embedding_grad;
}  // namespace op

ValueId embedding(GraphBuilder& g, ValueId table, ValueId ids);  // (V, C), (...) -> (..., C)

}  // namespace tokamak
