#include "advise/exact.h"

#include "advise/estimate.h"
#include "advise/links.h"
#include "base/bytes.h"
#include "compile/compiled_run.h"

#include <cmath>

namespace tokamak {

CompiledLayout compile_layout(const RunConfig& config, const ParallelLayout& layout, const ClusterConfig& cluster,
                              const Platform& platform) {
  CompiledRun run =
      compile_run(resolve(run_of(config, layout), platform.target), with_links(platform, cluster, layout.mesh));
  const CompiledStep& fullest = run.fullest();
  return {run.seconds, run.exposed_seconds(), double(fullest.total_bytes()), double(fullest.intermediate_bytes())};
}

std::optional<CompiledLayout> compile_within_memory(const RunConfig& config, ParallelLayout& layout,
                                                    const ClusterConfig& cluster, const Platform& platform) {
  constexpr int kTries = 3;
  double available = usable_bytes(cluster, layout.mesh);
  CompiledLayout compiled = compile_layout(config, layout, cluster, platform);
  double budget = compiled.intermediate;
  bool may_recompute = config.compile.recompute == kRecompute[0];
  for (int i = 0; may_recompute && i < kTries && compiled.bytes > available; ++i) {
    budget -= compiled.bytes - available;  // which the next one may miss by a little
    layout.budget_gib = std::floor(budget / kGiB * 100) / 100;
    if (layout.budget_gib <= 0) return {};
    compiled = compile_layout(config, layout, cluster, platform);
  }
  if (compiled.bytes > available) return {};
  return compiled;
}

}  // namespace tokamak
