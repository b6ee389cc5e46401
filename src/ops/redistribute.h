// A value as it is, of which a graph says where its elements should lie once ranks share them: what GSPMD calls a
// sharding constraint. The shard pass obeys and removes it; on one rank it is a view.
#pragma once

#include "graph/graph.h"

#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class GraphBuilder;

namespace op {
extern const OpDef redistribute;
}  // namespace op

/// Cut along `dim` over those of the axes that the mesh has and that divide it, the first one outermost; over others
/// as x lies. `axes` are names with blanks between them: "data tensor".
ValueId redistribute(GraphBuilder& g, ValueId x, const std::string& axes, int64_t dim);
/// As what is made of it is wanted; whole where nothing says so.
ValueId redistribute(GraphBuilder& g, ValueId x);

/// What is said of the axes and the dim; no axes: as is wanted.
struct Redistribution {
  std::vector<std::string> axes;
  int64_t dim = 0;
};
Redistribution redistribution_of(const Node& node);

}  // namespace tokamak
