// How much of a step is in each of its matmuls. Tests: tests/backend/cuda/matmul_shares_test.cpp
#pragma once

#include "graph/graph.h"

#include <map>
#include <span>
#include <string>

namespace tokamak::cuda {

/// Shares (0 to 1) of the step's time by MatmulProblem::key: of the nodes that are such a matmul together, and of the
/// classifier's parts by their FLOPs. `seconds` has those of each node of the graph.
std::map<std::string, double> matmul_shares(const Graph& step, std::span<const double> seconds);

}  // namespace tokamak::cuda
