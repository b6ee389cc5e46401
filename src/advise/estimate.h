// Memory and time of a layout without compiling all of it: composed from a few compiled blocks, whatever the model, the
// optimizer, the precision or the mesh. How far it is from whole compiled steps is held by
// tests/advise/estimate_test.cpp.
#pragma once

#include "advise/block_costs.h"
#include "advise/recompute_curve.h"
#include "config/cluster_config.h"

#include <limits>

namespace tokamak {

/// Of a GPU's memory, what a layout can take: of several GPUs all but what NCCL has for itself, which was up to 1 GiB
/// of each of two H200s (bench/results/2026-11-23-h200-x2-meshes.txt).
double usable_bytes(const ClusterConfig& cluster, const MeshConfig& mesh);

/// Of that, what layouts are planned for: the planned peak need not be met to the last byte.
double planned_bytes(const ClusterConfig& cluster, const MeshConfig& mesh);

struct Estimate {
  ParallelLayout layout;
  MemoryByKind memory;
  TimeByKind time;
};

/// What a layout takes on a cluster's GPUs. Where it is too much, as much is computed again as makes it fit, and the
/// layout's budget is set; where even that is not enough, memory.total() is still more than there is, and also where
/// it would take longer than `most` seconds then, or is not to be made to fit. `blocks` are those of its key, and
/// `curve` says where to begin. `platform` is of the cluster's GPU. UserError where the compiler refuses the layout.
Estimate estimate(const RunConfig& run, const ParallelLayout& layout, const ClusterConfig& cluster,
                  const Platform& platform, BlockCosts& blocks, const RecomputeCurve& curve = RecomputeCurve(),
                  double most = std::numeric_limits<double>::infinity(), bool makes_fit = true);
Estimate estimate(const RunConfig& run, const ParallelLayout& layout, const ClusterConfig& cluster,
                  const Platform& platform);

}  // namespace tokamak
