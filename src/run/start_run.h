// How a training run comes to its first step: what it has then, made one after the other. Tests:
// tests/e2e/resume_test.cpp, tests/e2e/lock_test.cpp, tests/e2e/mesh_run_test.cpp.
#pragma once

#include "checkpoint/run_folder.h"
#include "checkpoint/state_copy.h"
#include "run/choices_file.h"
#include "run/memory_states.h"
#include "run/run_progress.h"
#include "run/step_queue.h"

namespace tokamak {

/// In the order in which it is made; each may refer to what stands before it.
struct StartedRun {
  explicit StartedRun(const RunConfig& asked) : choices(asked.train.out) {}

  StartClock clock;
  bool is_first = true;                  // of this process: it is no later phase of train.ramp
  std::unique_ptr<RunFolder> folder;     // locked; of the rank that leads
  MemoryStates memory;                   // where states are kept
  std::optional<FoundCheckpoint> found;  // where the run goes on: a checkpoint, or a kept state
  Platform platform;                     // of the rank that leads, then tuned
  ResolvedRun resolved;                  // the same on all ranks
  std::unique_ptr<RunData> data;
  std::unique_ptr<InitialValues> initial;  // of a run that begins with whole parameters: drawn meanwhile
  ChoicesFile choices;
  std::unique_ptr<Session> session;  // without values
  CopyMemory copy_memory;            // of the phase before, for its saves
  int64_t host_bytes_left = 0;       // of memory for this rank beside what is planned; 0: unknown
};

/// All ranks call it. UserErrors: a folder that another process trains in, settings that do not fit the run or its
/// data, bad data, too little memory.
StartedRun start_run(const RunConfig& asked, const Platform& platform, Backend& backend, TrainObserver& observer,
                     const MeshRanks* ranks, const MemoryStates& memory);

/// The next phase of train.ramp, from the checkpoint with which the one before has ended. `folder`, `memory`: of that
/// one.
StartedRun start_phase(const RunConfig& asked, const Platform& platform, Backend& backend, TrainObserver& observer,
                       const MeshRanks* ranks, std::unique_ptr<RunFolder> folder, const MemoryStates& memory);

/// What a user should know of what he asked for, now that it is about to run.
std::vector<std::string> start_notes(const RunConfig& asked, const StartedRun& start);

/// The session gets the values of the checkpoint that was found, or else initial ones; on the queue's thread, which
/// computes. Where the run is then, of which the observer is told.
RunProgress load_values(StartedRun& start, StepQueue& queue, TrainObserver& observer);

}  // namespace tokamak
