// Who is told how a training run goes: the library itself prints nothing.
#pragma once

#include "checkpoint/metrics.h"
#include "run/start_phases.h"

#include <filesystem>
#include <string>

namespace tokamak {

/// Every call comes from the thread that called train().
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void message(const std::string& text) = 0;                  // a line for the user
  virtual void started(const std::vector<StartPhase>& /*phases*/) {}  // from train()'s begin to the first step's end
  /// A step is done.
  virtual void progress(int64_t /*step*/, int64_t /*total_steps*/, double /*eta_seconds*/) {}
  /// The means of the steps since the last call, up to metrics.step.
  virtual void step(const StepMetrics& metrics, int64_t total_steps, double eta_seconds) = 0;
  virtual void sample(int64_t step, const std::string& text) = 0;
  virtual void saved(int64_t step, const std::filesystem::path& path) = 0;
  /// This rank has all of the state, and saves it when the others are lost: so it should not be ended at once then.
  virtual void may_rescue() {}
  /// Ranks are lost, and what this one could save is saved: what it holds on its device can be left to the system,
  /// which frees it faster.
  virtual void lost(const std::string& /*why*/) {}
  /// What becomes of the state of a run whose ranks are lost: on each rank that saves it or cannot.
  virtual void rescue_told(const std::string& text) { message(text); }
};

}  // namespace tokamak
