// How long kernels take on a backend: for predictions, and for choices between two ways of computing the same.
#pragma once

#include "backend/backend.h"
#include "plan/plan.h"

namespace tokamak {

/// Seconds of the node's kernel alone, on random operands: the median of a few runs after one that warms up.
double measure_node(Backend& backend, const Graph& graph, const Node& node);

/// Adds to target.measured_seconds the kernels of the plan whose speed is a library's affair (matmuls, attention), as
/// far as they are not there yet.
void measure_library_kernels(Target& target, const Plan& plan, Backend& backend);

}  // namespace tokamak
