// The first rows of a tensor, as a view of it: what a model reads of a parameter that is stored with zeros behind it.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef first_rows;
}  // namespace op

/// x (rows or more, ...) -> (rows, ...); x itself where it has no more.
ValueId first_rows(GraphBuilder& g, ValueId x, int64_t rows);

}  // namespace tokamak
