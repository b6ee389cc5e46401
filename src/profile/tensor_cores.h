// Whether a kernel's products run on tensor cores, and why not. Tests: tests/profile/tensor_cores_test.cpp.
#pragma once

#include "graph/graph.h"

#include <string>

namespace tokamak {

/// "yes", "yes, but n=50257 is no multiple of 8", "no: f32 operands"; empty for what multiplies no matrices.
std::string tensor_core_use(const Graph& graph, const Node& node);

}  // namespace tokamak
