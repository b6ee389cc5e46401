// Ops that move elements, or only give them another shape.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef reshape, transpose, slice, pad, concat;
}  // namespace op

ValueId reshape(GraphBuilder& g, ValueId a, Shape shape);  // one dim may be -1; returns `a` when nothing changes
ValueId transpose(GraphBuilder& g, ValueId a, std::vector<int64_t> perm);
ValueId slice(GraphBuilder& g, ValueId a, int64_t dim, int64_t begin, int64_t size);
ValueId pad(GraphBuilder& g, ValueId a, int64_t dim, int64_t before, int64_t after);  // with zeros
ValueId concat(GraphBuilder& g, std::vector<ValueId> values, int64_t dim);

}  // namespace tokamak
