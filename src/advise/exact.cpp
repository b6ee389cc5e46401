#include "advise/exact.h"

#include "advise/links.h"
#include "passes/step_mesh.h"
#include "train/compiled_run.h"

namespace tokamak {

ExactPlan compile_layout(const RunConfig& config, const ParallelLayout& layout, const ClusterConfig& cluster,
                         Platform platform) {
  Mesh mesh = step_mesh(layout.mesh);
  int64_t stride = 1;
  for (auto axis = mesh.axes.rbegin(); axis != mesh.axes.rend(); stride *= axis->size, ++axis) {
    if (axis->size == 1) continue;
    Link link = axis_link(cluster, stride, axis->size);
    platform.target.axis_links[axis->name] = {link.bandwidth, link.latency};
  }
  CompiledRun run = compile_run(run_of(config, layout), platform);
  return {run.seconds, run.exposed_seconds(), double(run.fullest().total_bytes())};
}

}  // namespace tokamak
