// Graphs as text, for tests of passes.
#pragma once

#include "graph/text.h"
#include "ops/all_ops.h"

#include <string>

namespace tokamak::test {

inline Graph parse(std::string_view text) { return parse_graph(text, find_op); }

/// The canonical print of a graph written by hand.
inline std::string canonical(std::string_view text) { return print(parse(text)); }

inline int count_ops(const Graph& graph, std::string_view name) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op->name == name;
  return count;
}

}  // namespace tokamak::test
