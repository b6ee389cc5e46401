// What is saved when ranks are lost: the state after the last step, by a rank that has all of it in memory. Tests:
// tests/mesh/rescue_test.cpp, tests/e2e/mesh_run_test.cpp.
#pragma once

#include "checkpoint/metrics.h"
#include "run/run_progress.h"

#include <deque>
#include <filesystem>
#include <optional>

namespace tokamak {

/// Whether this rank has all of every parameter and state that is kept, and not only a share of some.
bool has_whole_state(const TensorStore& store);

/// Saves the state after `progress`, which the rank has whole, without the others. One that does not lead locks the
/// run's folder first, as the rank that leads is gone, and adds what metrics.jsonl lacks of `recent`, the last steps up
/// to that state. Nothing where another rank was faster, or the folder is on another machine. UserErrors are those of
/// save_checkpoint.
std::optional<std::filesystem::path> rescue_progress(const RunProgress& progress, const std::deque<StepMetrics>& recent,
                                                     const ResolvedRun& run, const Session& session, Backend& backend,
                                                     const RunData& data, const CheckpointMarks& marks, bool leads);

}  // namespace tokamak
