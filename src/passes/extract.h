// A part of a graph as a graph of its own. Tests: tests/passes/extract_test.cpp.
#pragma once

#include "graph/graph.h"

#include <map>

namespace tokamak {

/// A state that stands for a value of the graph; where their types differ, there is a cast between them.
struct StandIn {
  std::string name;
  ValueType type;
  ArgumentSpec spec;
};

/// What the part gives, and what it is given.
struct Part {
  std::string name;
  std::vector<Result> results;
  std::vector<Update> updates;                         // of the graph's own arguments
  std::vector<std::pair<ValueId, StandIn>> left = {};  // values that the part leaves in states, for others
  std::map<ValueId, StandIn> given = {};               // and those that others have left: what makes them is not needed
};

/// The nodes that are needed for that, in their order, and the arguments that they read or that are updated.
Graph extract(const Graph& graph, const Part& part);

}  // namespace tokamak
