// Profiles some steps of a training run while it trains. Tests: tests/profile/run_profiler_test.cpp.
#pragma once

#include "profile/profile_run.h"
#include "run/step_watcher.h"

#include <optional>

namespace tokamak {

/// Before its first step and behind its last one a step costs comparisons.
class RunProfiler : public StepWatcher {
 public:
  /// `first`: the step that StepProfiler's begin with; if that was done before, nothing is profiled. On the rank that
  /// leads `done` gets the report, as profile_run() gives it, and the first of the steps that were observed. Must not
  /// outlive the backend.
  RunProfiler(int64_t first, const ProfileRunOptions& options, Backend& backend, const MeshRanks* ranks,
              std::function<void(ProfileReport&, int64_t first_profiled)> done)
      : first_(first), options_(options), backend_(backend), ranks_(ranks), done_(std::move(done)) {}

  void step_begins(int64_t step, const WatchedRun& run) override;
  void data_read() override;
  void step_submitted() override;

 private:
  int64_t first_;
  ProfileRunOptions options_;
  Backend& backend_;
  const MeshRanks* ranks_;
  std::function<void(ProfileReport&, int64_t)> done_;
  std::optional<WatchedRun> run_;
  std::optional<StepProfiler> profiler_;  // while its steps are taken
};

}  // namespace tokamak
