// The first rows of a tensor, or of each of its equal parts, as a view of it: what a model reads of a parameter that is
// stored with zeros behind it. Of several parts it is a view where a rank has one of them.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef first_rows;
}  // namespace op

/// x (rows or more, ...) -> (rows, ...); x itself where it has no more. Of `parts` equal parts of x each gives
/// rows / parts.
ValueId first_rows(GraphBuilder& g, ValueId x, int64_t rows, int64_t parts = 1);

}  // namespace tokamak
