// The loss of each row of logits, and its gradient.
#pragma once

#include "graph/graph.h"
#include "ops/softcap.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef cross_entropy, cross_entropy_grad;
}  // namespace op

/// (R, V), i32 (R) -> (R): -log softmax(logits)[target] over the first `classes` columns, capped before if there is a
/// soft cap.
ValueId cross_entropy(GraphBuilder& g, ValueId logits, ValueId targets, int64_t classes, const Softcap& softcap = {});

}  // namespace tokamak
