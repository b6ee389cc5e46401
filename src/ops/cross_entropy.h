// The loss of each row of logits, and its gradient.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef cross_entropy, cross_entropy_grad;
}  // namespace op

/// (R, V), i32 (R) -> (R): -log softmax(logits)[target] over the first `classes` columns.
ValueId cross_entropy(GraphBuilder& g, ValueId logits, ValueId targets, int64_t classes);

}  // namespace tokamak
