// How far a training run is, and how that goes into a checkpoint and comes back. Tests: tests/e2e/resume_test.cpp.
#pragma once

#include "run/run_data.h"
#include "run/session.h"

namespace tokamak {

struct RunProgress {
  int64_t step = 0;     // optimizer steps done
  int64_t tokens = 0;   // that they saw
  int64_t samples = 0;  // taken from the data
};

/// What a checkpoint tells of others and of itself, as CheckpointState has it.
struct CheckpointMarks {
  KnownGoodState good;
  int64_t best = 0;
  bool is_extra = false;
};

/// Which checkpoints the run keeps.
KeepRule keep_rule(const TrainConfig& train);

/// All of a checkpoint but its tensors; what only the rank that `writes` it needs is empty on others.
CheckpointState describe_progress(const RunProgress& progress, const ResolvedRun& run, const RunData& data, bool writes,
                                  const CheckpointMarks& marks = {});

/// Saves the tensors and the rest of the run's state; the folder. UserErrors are those of save_checkpoint.
std::filesystem::path save_progress(const RunProgress& progress, const ResolvedRun& run, const TensorStore& store,
                                    const RunData& data, const CheckpointMarks& marks = {});

/// Fills the session with what a checkpoint holds. UserErrors are those of load_parameters.
RunProgress load_progress(const FoundCheckpoint& found, Session& session);

/// What the run of a checkpoint was, with nothing left open.
RunConfig config_of(const FoundCheckpoint& found);

/// `config` for steps behind the checkpoint: what it leaves open and is measured, precision and slots, is as the run
/// began. UserErrors are those of require_same_run.
RunConfig going_on(RunConfig config, const FoundCheckpoint& found);

}  // namespace tokamak
