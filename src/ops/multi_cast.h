// Many values cast in one node, some of them side by side.
#pragma once

#include "graph/graph.h"

#include <span>

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef multi_cast;
}  // namespace op

/// All values in this float type, in one node. `joins`: for each output, how many values in a row it is made of, put
/// side by side along dim 0; empty: one each.
ValueIds multi_cast(GraphBuilder& g, ValueIds values, DType to, std::vector<int64_t> joins = {});

/// What output `output` of a multi_cast is made of.
std::span<const ValueId> cast_values(const Node& node, size_t output);

/// Where an input of a multi_cast goes: to this output, from this element on.
struct CastPlace {
  size_t output = 0;
  int64_t begin = 0;
};
/// By input.
std::vector<CastPlace> cast_places(const Graph& graph, const Node& node);

}  // namespace tokamak
