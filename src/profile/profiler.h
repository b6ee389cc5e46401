// Some steps of a run, taken as training takes them, with all that a rank does written down.
// Tests: tests/profile/profiler_test.cpp.
#pragma once

#include "data/loader.h"
#include "plan/timeline.h"
#include "profile/recorder.h"
#include "profile/sensor_log.h"
#include "train/session.h"

#include <functional>

namespace tokamak {

struct ProfileOptions {
  int64_t steps = 10;
  int64_t warmup = 2;  // steps before them
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

  TimeLedger ledger() const;
  /// By how much observing made steps longer, as a share.
  double slowdown() const { return unrecorded_seconds > 0 ? seconds / unrecorded_seconds - 1 : 0; }
};

/// The batches of the next step.
using NextBatches = std::function<std::vector<Batch>()>;

/// Takes steps of an initialised or new session, whose parameters it initialises. All ranks call it at the same time.
/// What it gives points into the session's plans. `replays`: whether the backend replays recorded steps.
StepProfile profile_steps(Session& session, Backend& backend, const NextBatches& next, const ProfileOptions& options,
                          bool replays);

}  // namespace tokamak
