// For tests that say what is asked for and care for what comes of it, but not for what lies between.
#pragma once

#include "compile/compiled_run.h"
#include "compile/pipe_compiler.h"
#include "compile/step_compiler.h"
#include "run/random_batch.h"
#include "run/session.h"
#include "tune/tune.h"

namespace tokamak {

inline CompiledStep compile_step(const RunConfig& asked, const Platform& platform) {
  return compile_step(resolve(asked, platform.target), platform);
}

inline CompiledRun compile_run(const RunConfig& asked, const Platform& platform) {
  return compile_run(resolve(asked, platform.target), platform);
}

inline CompiledPipeline compile_pipeline(const RunConfig& asked, const Platform& platform) {
  return compile_pipeline(resolve(asked, platform.target), platform);
}

inline Platform tune(const RunConfig& asked, const Platform& platform, Backend& backend,
                     Measure measure = Measure::kAll, std::string_view kept = {}) {
  return tune(resolve(asked, platform.target), platform, backend, measure, kept);
}

inline Session make_session(const RunConfig& asked, const Platform& platform, Backend& backend,
                            int64_t available_bytes = 0, const MeshRanks* ranks = nullptr) {
  return Session(resolve(asked, platform.target), platform, backend, available_bytes, ranks);
}

inline Batch random_batch(const RunConfig& asked, uint64_t seed) { return random_batch(resolve(asked, {}), seed); }

}  // namespace tokamak
