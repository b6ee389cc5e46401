// Some steps of a run, with all that a rank does in them written down.
// Tests: tests/profile/profiler_test.cpp.
#pragma once

#include "data/loader.h"
#include "plan/timeline.h"
#include "profile/recorder.h"
#include "profile/sensor_log.h"
#include "run/step_queue.h"

#include <functional>

namespace tokamak {

struct ProfileOptions {
  int64_t steps = 10;
  int64_t warmup = 2;  // steps before all others
};

/// A batch that a thread of the loader made.
struct WorkerSpan {
  int worker = 0;
  double begin = 0, end = 0;
};

/// Of one rank. All times are of `steps` steps, from the moment when the first was asked for until the last had ended.
struct StepProfile {
  int64_t steps = 0;
  double seconds = 0;             // observed
  double start_seconds = 0;       // when they began, by a clock that all processes of the machine share
  double plain_seconds = 0;       // as many with nobody observing, the mean of those before and after
  double unrecorded_seconds = 0;  // the same launched one by one; equal to plain_seconds where steps always are
  std::vector<RecordedWork> works;
  std::vector<Span> data_waits;  // of the host, for the data of each step
  std::vector<WorkerSpan> workers;
  std::vector<TimedReading> sensors;
  std::string clock;  // how the device's times are known

  TimeBreakdown breakdown() const;
  /// By how much observing made steps longer, as a share.
  double slowdown() const { return unrecorded_seconds > 0 ? seconds / unrecorded_seconds - 1 : 0; }
};

/// Accounts for the next steps of a session, which somebody takes on its queue and tells of: some before, as many with
/// nobody observing, where steps are replayed as many launched one by one, those that are profiled, and as many with
/// nobody observing again. All ranks have one at the same time.
class StepProfiler {
 public:
  /// `loader`: whose threads are watched; null: none. `replays`: whether the backend replays recorded steps. It must
  /// outlive the queue, whose thread tells it of work, and is used no more when session or loader have ended.
  StepProfiler(Session& session, StepQueue& queue, Backend& backend, Loader* loader, const ProfileOptions& options,
               bool replays);

  /// Steps that it needs in all.
  int64_t num_steps() const;
  /// The host turns to the next step: it reads its data now.
  void step_begins();
  void data_read();
  /// Waits for the step where others follow that count otherwise.
  void step_submitted();
  bool done() const { return phase_ == phases_.end(); }
  /// When all are done. It points into the session's plans.
  StepProfile take();

 private:
  struct Phase {
    int64_t steps;
    WorkObserver* observer;
    double* seconds;
  };
  struct MadeBatches;

  void begin_phase();
  void end_phase();
  void watch_loader();
  void end_recording();
  bool records() const { return phase_->observer == &recorder_; }

  Session& session_;
  StepQueue& queue_;
  Backend& backend_;
  Loader* loader_;
  WorkRecorder recorder_;
  WorkObserver nobody_;  // who keeps steps from being replayed, and nothing else
  StepProfile profile_;
  double warmup_ = 0, before_ = 0, unrecorded_ = 0, after_ = 0;  // seconds of phases
  std::vector<Phase> phases_;
  std::vector<Phase>::const_iterator phase_;
  int64_t left_ = 0;   // steps of the phase that are not begun
  double turned_ = 0;  // when the host turned to this step
  std::unique_ptr<SensorLog> sensors_;
  std::shared_ptr<MadeBatches> made_;  // the loader's threads may have it longer than we do
};

/// Where steps come from that are taken for their profile alone.
struct StepSource {
  std::function<void()> begin;               // on the thread of the steps: gives the session its parameters
  std::function<std::vector<Batch>()> next;  // the batches of the next step
  Loader* loader = nullptr;                  // that they come from; null: no loader
  int64_t done = 0;                          // steps before
};

/// Takes the steps, as training does. All ranks call it at the same time. `replays`: as above.
StepProfile profile_steps(Session& session, Backend& backend, const StepSource& source, const ProfileOptions& options,
                          bool replays);

}  // namespace tokamak
