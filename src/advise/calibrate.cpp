#include "advise/calibrate.h"

#include "advise/links.h"
#include "base/error.h"
#include "compile/compiled_run.h"
#include "graph/gpu_target.h"

#include <cmath>

namespace tokamak {
namespace {

double predicted_seconds(const RunConfig& run, const ClusterConfig& cluster, const Platform& platform) {
  return compile_run(resolve(run, platform.target), with_links(platform, cluster, run.mesh)).seconds;
}

}  // namespace

// Only a part of a step goes with the clock, so that a share follows from the one before.
Calibration calibrate(const RunConfig& run, double measured, ClusterConfig cluster,
                      const std::function<Platform(const GpuConfig&)>& platform) {
  constexpr double kLeast = 0.2, kMost = 1.5, kClose = 1e-3;
  constexpr int kTries = 30;
  Figure& share = cluster.gpu.load_clock;
  share.value = load_clock(cluster.gpu);
  Calibration found{.measured = measured};
  for (int i = 0; i < kTries; ++i) {
    double predicted = predicted_seconds(run, cluster, platform(cluster.gpu));
    if (i == 0) found.predicted = predicted;
    found.load_clock = share.value;
    if (std::abs(predicted / measured - 1) < kClose) return found;
    share.value *= predicted / measured;
    if (share.value < kLeast || share.value > kMost) break;
  }
  user_error(
      "[calibrate] expected a run on {} of {}, got one whose steps took {:.1f} ms where {:.1f} ms are predicted, which "
      "no clock of that GPU explains; name the cluster that it was on by --cluster",
      cluster.gpu.name, cluster.name, 1e3 * measured, 1e3 * found.predicted);
}

}  // namespace tokamak
