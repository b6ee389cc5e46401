// What a run is about to do, for the lines at its start and for `train --dry-run`. Tests:
// tests/run/run_outline_test.cpp.
#pragma once

#include "run/progress.h"
#include "run/run_data.h"

#include <string>

namespace tokamak {

/// `step_seconds`: predicted for a step of the run's present phase; `memory_bytes`: planned.
RunOutline make_outline(const ResolvedRun& run, const Target& target, const RunData& data, int64_t done,
                        double step_seconds, int64_t memory_bytes);

/// That, how the learning rate goes, and what is noticed before anything is allocated: all without a lock, a file or
/// memory of the device. UserErrors as of train(). `run` has the length in steps (run/check_run.h).
std::string describe_run(const RunConfig& run, const Platform& platform);

/// "mesh: data 4 x tensor 2, ZeRO 1"
std::string describe_mesh(const ResolvedRun& run);

}  // namespace tokamak
