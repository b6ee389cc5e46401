// A training run on the disk: its state between steps, and what can be saved of it when ranks are lost. Tests:
// tests/e2e/resume_test.cpp, tests/mesh/rescue_test.cpp.
#pragma once

#include "run/rescue.h"
#include "run/run_events.h"
#include "run/start_run.h"
#include "run/step_reporter.h"

namespace tokamak {

class RunSaver {
 public:
  /// Of a run that goes on after `saved` steps. What is passed must outlive it.
  RunSaver(StartedRun& start, int64_t saved, StepReporter& reporter, RunEvents& events, Backend& backend,
           TrainObserver& observer, const MeshRanks* ranks)
      : start_(start), reporter_(reporter), events_(events), backend_(backend), observer_(observer), ranks_(ranks),
        saved_step_(saved) {}

  /// The state after all steps so far, which have run and are recorded; once. `is_extra`: as CheckpointState has it.
  void save(const RunProgress& done, bool is_extra = false);

  /// That the last save took; 0: there was none.
  double seconds() const { return seconds_; }

  /// The checkpoint of this step, which is saved, is the best from now on; 0: none is.
  void mark_best(int64_t step);
  /// Removes what is older than the newest ones, but for the best one and the one known to be good.
  void remove_old() const;

  /// Whether this rank can save the state without the others: it has all of it. A backend's queue is let go with
  /// whatever is in it.
  bool can_rescue() const;
  /// Whether it is to do so, when the others are lost: the rank that leads, or where that is lost every one that can.
  bool should_rescue() const;
  /// Saves the state after `done`, the last steps that are recorded, of which `recent` are the last; tells the observer
  /// what has become of it. `cause`: why the others are lost.
  void rescue(const RunProgress& done, const std::deque<StepMetrics>& recent, const std::string& cause);

 private:
  CheckpointMarks marks() const { return {reporter_.known_good(), best_}; }

  StartedRun& start_;
  StepReporter& reporter_;
  RunEvents& events_;
  Backend& backend_;
  TrainObserver& observer_;
  const MeshRanks* ranks_;
  int64_t saved_step_;
  int64_t best_ = 0;
  double seconds_ = 0;
};

}  // namespace tokamak
