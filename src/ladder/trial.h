// One run that the ladder measures: prepared as a training run is, then timed on random tokens. On a mesh all ranks
// make these calls in the same order, and the rank that leads decides and measures. Tests:
// tests/ladder/ladder_test.cpp, tests/mesh/mesh_ladder_test.cpp.
#pragma once

#include "compile/compiled_run.h"
#include "exec/mesh_ranks.h"
#include "ladder/ladder.h"
#include "run/session.h"

#include <chrono>
#include <string>

namespace tokamak {

/// A run, compiled but not begun.
struct PreparedTrial {
  ResolvedRun resolved;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  Platform platform;    // tuned, of the rank that leads
  CompiledRun run;      // of the rank that leads
  std::string failure;  // of all ranks: why it cannot run; else empty
};

/// As a training run begins. `failure` says it where a rank has less memory than the plan needs.
PreparedTrial prepare_trial(const ResolvedRun& run, const Platform& platform, Backend& backend,
                            const MeshRanks* ranks = nullptr);

/// Its session, on this rank; ranks that do not lead get the choices of the one that does into `prepared`. Null where
/// it could not be made on some rank, which `failure` then tells of.
std::unique_ptr<Session> make_session(PreparedTrial& prepared, Backend& backend, const MeshRanks* ranks,
                                      std::string& failure);

/// Everything of a RungResult that is not in comparison with others; of ranks that do not lead only the failure and the
/// time of a step, and their `prepared` is given the choices of the one that does. `load_seconds` of steps come before
/// those that are timed, on one rank.
RungResult measure_trial(PreparedTrial& prepared, Backend& backend, const LadderOptions& options,
                         double load_seconds = 0, const MeshRanks* ranks = nullptr);

}  // namespace tokamak
