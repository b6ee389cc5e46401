// Which values are a parameter put together from the ranks that share it. Tests: tests/passes/apply_recompute_test.cpp,
// tests/passes/bucket_test.cpp.
#pragma once

#include "graph/graph.h"

#include <optional>

namespace tokamak {

/// By value: how many all_gathers, before the update, make it of a parameter with nothing but casts between them; 0 for
/// a parameter itself and its casts; none for all other values.
std::vector<std::optional<int>> count_gathers(const Graph& graph);

/// By node: whether it is such an all_gather, or a cast that nothing else reads.
std::vector<bool> find_gathering(const Graph& graph);

}  // namespace tokamak
