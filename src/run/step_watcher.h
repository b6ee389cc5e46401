// Who is told when a training run turns to its steps, to account for their time. Tests:
// tests/profile/run_profiler_test.cpp.
#pragma once

#include "data/loader.h"
#include "graph/platform.h"
#include "run/step_queue.h"

namespace tokamak {

/// Parts of a run that live as long as it.
struct WatchedRun {
  Session& session;
  StepQueue& queue;
  Loader& loader;
  const Platform& platform;
};

/// Every call comes from the thread that called train(), in this order, on all ranks alike.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  /// Before the data of a step is read; steps count from 1.
  virtual void step_begins(int64_t step, const WatchedRun& run) = 0;
  virtual void data_read() = 0;
  /// Before what comes between steps: validation, samples, saving.
  virtual void step_submitted() = 0;
};

}  // namespace tokamak
