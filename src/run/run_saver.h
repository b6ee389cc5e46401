// A training run on the disk: its state between steps, and what can be saved of it when ranks are lost. Tests:
// tests/e2e/resume_test.cpp, tests/mesh/rescue_test.cpp.
#pragma once

#include "run/archiver.h"
#include "run/background_saver.h"
#include "run/rescue.h"
#include "run/run_events.h"
#include "run/slow_saves.h"
#include "run/start_run.h"
#include "run/step_reporter.h"

namespace tokamak {

class RunSaver {
 public:
  /// Of a run that goes on after `saved` steps. What is passed must outlive it.
  RunSaver(StartedRun& start, int64_t saved, StepReporter& reporter, RunEvents& events, Backend& backend,
           TrainObserver& observer, const MeshRanks* ranks);

  /// From now on saves are written beside the steps, where there is memory for a copy of the state; `free_bytes` are
  /// left in the host's (0: unknown). The bytes of the copy; 0: there is none. All ranks call it.
  int64_t save_in_background(int64_t free_bytes);
  /// The first step runs: now that memory is taken beside it, where there is none of a phase before.
  void reserve() {
    if (background_ && !has_copy_memory_) background_->reserve();
  }
  /// That memory, for the next phase; the last save has ended.
  CopyMemory release_memory() { return background_ ? background_->release_memory() : CopyMemory(); }

  /// The state after all steps so far, which have run and are recorded; once, when the save before has ended. It may
  /// not even be written yet on return, but the next step may be submitted. `is_extra`: as CheckpointState has it.
  void save(const RunProgress& done, bool is_extra = false);
  /// Begins to write what save() has left, when the next step runs, or where none is to come soon. All ranks call it at
  /// the same time.
  void write();
  /// The same, and it is on the disk on return.
  void save_now(const RunProgress& done, bool is_extra = false);
  /// The same state into the memory of the machine (run/memory_states.h), unless what was asked for last is still being
  /// written. What goes wrong there is told, and no more states are kept. All ranks call it.
  void keep(const RunProgress& done);
  /// What was kept may be wrong.
  void forget_kept();
  /// Between two steps: tells of a save that has ended well meanwhile, and of what could not be archived.
  void look();
  /// Waits for the save that is being written. Throws why it failed, on all ranks.
  void settle();
  /// The same before an error is thrown that all ranks live to see.
  void settle_quietly();
  /// Why a save has failed that was being written; empty: none has. For any thread.
  std::string failure() const { return background_ && !is_keeping_ ? background_->failure() : ""; }
  /// Waits until the newest checkpoint is in the archive, where there is one, or could not be copied.
  void finish_archive();
  /// Other ranks are lost: what is being written is left, unless only its name is missing.
  void abandon();

  /// That the last save took; 0: there was none.
  double seconds() const { return seconds_; }

  /// The checkpoint of this step, which is saved, is the best from now on; 0: none is.
  void mark_best(int64_t step);
  /// Removes what is older than the newest ones, but for the best one and the one known to be good.
  void remove_old();

  /// Whether this rank can save the state without the others: it has all of it. A backend's queue is let go with
  /// whatever is in it.
  bool can_rescue() const;
  /// Whether it is to do so, when the others are lost: the rank that leads, or where that is lost every one that can.
  bool should_rescue() const;
  /// Saves the state after `done`, the last steps that are recorded, of which `recent` are the last; tells the observer
  /// what has become of it. `cause`: why the others are lost.
  void rescue(const RunProgress& done, const std::deque<StepMetrics>& recent, const std::string& cause);

 private:
  // A save that has begun.
  struct Saved {
    RunProgress done;
    CheckpointMarks marks;
    std::filesystem::path path;
    std::chrono::steady_clock::time_point begin;
    double stall_seconds = 0;
    std::filesystem::path out = {};  // the run's folder, or that of kept states
    double unsaved_seconds = 0;      // of a kept state: what steps took whose outcome is in no save
  };

  CheckpointMarks marks() const { return {reporter_.known_good(), best_}; }
  bool is_open() const { return background_ && background_->is_open(); }
  bool begin_in_background();
  CheckpointState state_of(const Saved& saved) const;
  bool has_memory();
  void save(const RunProgress& done, bool is_extra, bool now);
  void settle_before_next();
  void write_kept();
  void settle_kept();
  void give_up_keeping(std::string_view why);
  void ended(double seconds);
  void settle_marks();
  void warn_of_archive();

  StartedRun& start_;
  StepReporter& reporter_;
  RunEvents& events_;
  Backend& backend_;
  TrainObserver& observer_;
  const MeshRanks* ranks_;
  std::unique_ptr<BackgroundSaver> background_;  // null: training waits for saves
  bool has_copy_memory_ = false;                 // from a phase before
  bool knows_memory_ = false;                    // that all ranks have it for background_,
  bool knows_folders_ = false;                   // and see the run's folder,
  bool knows_kept_folder_ = false;               // or not that of kept states
  bool is_copied_ = false;                       // newest_, and nobody writes it yet
  MemoryStates memory_;                          // where states are kept
  std::atomic<bool> is_keeping_ = false;         // whether newest_ is such a state
  std::unique_ptr<Archiver> archiver_;           // null: no archive, or another rank leads
  Saved newest_;
  int64_t saved_step_;    // or being saved
  int64_t durable_step_;  // the last that is on the disk
  int64_t best_ = 0;
  bool marks_later_ = false, removes_later_ = false;  // when the open save has ended
  double seconds_ = 0;
  SlowSaves slow_;
};

}  // namespace tokamak
