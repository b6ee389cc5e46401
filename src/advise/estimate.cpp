#include "advise/estimate.h"

#include "advise/compose.h"
#include "advise/links.h"
#include "base/bytes.h"

namespace tokamak {
namespace {

constexpr double kPlannedShare = 0.98;
constexpr double kCommunicatorBytes = kGiB;

}  // namespace

double usable_bytes(const ClusterConfig& cluster, const MeshConfig& mesh) {
  bool is_alone = mesh.pipe * mesh.data * mesh.context * mesh.tensor == 1;
  return cluster.gpu.memory_bytes.value - (is_alone ? 0 : kCommunicatorBytes);
}

double planned_bytes(const ClusterConfig& cluster, const MeshConfig& mesh) {
  return kPlannedShare * usable_bytes(cluster, mesh);
}

Estimate estimate(const RunConfig& run, const ParallelLayout& layout, const ClusterConfig& cluster,
                  const Platform& platform, BlockCosts& blocks, const RecomputeCurve& curve, double most,
                  bool makes_fit) {
  Composition composition{run.model.layers,
                          layout,
                          planned_bytes(cluster, layout.mesh),
                          with_links(platform, cluster, layout.mesh),
                          blocks,
                          most,
                          makes_fit && run.compile.recompute == kRecompute[0],
                          curve};
  return layout.mesh.pipe > 1 ? compose_pipeline(composition) : compose_step(composition);
}

Estimate estimate(const RunConfig& run, const ParallelLayout& layout, const ClusterConfig& cluster,
                  const Platform& platform) {
  BlockCosts blocks(run, layout);
  return estimate(run, layout, cluster, platform, blocks);
}

}  // namespace tokamak
