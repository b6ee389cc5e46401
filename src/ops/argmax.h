// Which class has the largest logit: what a model would say where it takes the likeliest token.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef argmax;
}  // namespace op

/// (R, V) -> f32 (R): the index of the largest of the first `classes` columns, of equal ones the first.
ValueId argmax(GraphBuilder& g, ValueId logits, int64_t classes);

}  // namespace tokamak
