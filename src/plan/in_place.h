// Which output may be written over which input of the same node. Tests: tests/plan/in_place_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

/// Whether the kernel may write output number `output` over input number `input` while it still reads that input: both
/// have the same type and the op's record (for a group: the body) promises it. Says nothing about other readers.
bool may_overwrite(const Graph& graph, const Node& node, int output, int input);

}  // namespace tokamak
