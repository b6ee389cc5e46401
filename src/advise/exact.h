// A layout as the compiler plans it: one rank of each stage is compiled for the described GPU.
// Tests: tests/advise/estimate_test.cpp.
#pragma once

#include "advise/layout.h"
#include "config/cluster_config.h"
#include "graph/platform.h"

namespace tokamak {

struct ExactPlan {
  double seconds = 0;  // of a step
  double exposed = 0;  // of those, what they would be less without communication
  double bytes = 0;    // of the fullest GPU
};

/// `platform` is of the cluster's GPU; the links of each axis are those that it has there. UserError where the compiler
/// refuses the layout.
ExactPlan compile_layout(const RunConfig& config, const ParallelLayout& layout, const ClusterConfig& cluster,
                         Platform platform);

}  // namespace tokamak
