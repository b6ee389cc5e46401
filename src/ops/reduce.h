// Reductions over `dims`; `keep` leaves them as dims of size 1.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef reduce_sum, reduce_max, sum_squares;
}  // namespace op

ValueId reduce_sum(GraphBuilder& g, ValueId a, std::vector<int64_t> dims, bool keep);
ValueId reduce_max(GraphBuilder& g, ValueId a, std::vector<int64_t> dims, bool keep);
/// Whether it is a reduction over dims of size 1 alone, so that its result is its input, in another shape.
bool reduces_nothing(const Node& node, const ValueType& input);
/// f32[]: the sum of squares of all elements of all values.
ValueId sum_squares(GraphBuilder& g, ValueIds values);
/// f32[values, pieces]: of each value, all of one shape, the sum of squares of each of so many equal pieces of dim 0.
/// The bits of a sum do not depend on how many others there are.
ValueId sum_squares_of_pieces(GraphBuilder& g, ValueIds values, int64_t pieces);

}  // namespace tokamak
