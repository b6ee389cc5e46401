// A layout as the compiler plans it: one rank of each stage is compiled for the described GPU.
// Tests: tests/advise/estimate_test.cpp.
#pragma once

#include "advise/layout.h"
#include "config/cluster_config.h"
#include "graph/platform.h"

#include <optional>

namespace tokamak {

struct CompiledLayout {
  double seconds = 0;       // of a step
  double exposed = 0;       // of those, what they would be less without communication
  double bytes = 0;         // of the fullest GPU
  double intermediate = 0;  // of those, what a memory budget is for
};

/// `platform` is of the cluster's GPU; the links of each axis are those that it has there. UserError where the compiler
/// refuses the layout.
CompiledLayout compile_layout(const RunConfig& config, const ParallelLayout& layout, const ClusterConfig& cluster,
                              const Platform& platform);

/// The same within the memory of a GPU: where the estimate promised too much, again with smaller budgets, the last
/// of which the layout then has. None where a few of them are too much as well. What is computed again within a budget
/// is found by compile/fill_budget.h; here it is asked which budget leaves room for all else that a step takes, and
/// that is the one that a run is then given.
std::optional<CompiledLayout> compile_within_memory(const RunConfig& config, ParallelLayout& layout,
                                                    const ClusterConfig& cluster, const Platform& platform);

}  // namespace tokamak
