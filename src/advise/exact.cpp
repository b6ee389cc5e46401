#include "advise/exact.h"

#include "train/compiled_run.h"

namespace tokamak {

ExactPlan compile_layout(const RunConfig& config, const ParallelLayout& layout, const Platform& platform) {
  CompiledRun run = compile_run(run_of(config, layout), platform);
  return {run.seconds, run.exposed_seconds(), double(run.fullest().total_bytes())};
}

}  // namespace tokamak
