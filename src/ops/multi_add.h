// Sums of many tensors in one node.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef multi_add;
}  // namespace op

/// terms[0][i] + terms[1][i] + ..., for every i; all terms have as many values.
ValueIds multi_add(GraphBuilder& g, const std::vector<ValueIds>& terms);

}  // namespace tokamak
