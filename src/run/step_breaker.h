// Ends a step that takes long between two of its kernels, so that nobody waits minutes for a run that is to stop.
// Tests: tests/run/step_breaker_test.cpp.
#pragma once

#include "run/session.h"

#include <functional>

namespace tokamak {

/// Thrown out of a step: parameters, optimizer states and all else that a checkpoint holds are as they were before it.
/// The session takes no more steps, as sums of gradients are half made.
struct StepBroken {};

/// Watches a session's steps (Session::observe), for which launches are neither recorded nor far ahead of the device.
class StepBreaker : public WorkObserver {
 public:
  /// `stops` is asked between kernels, on the steps' thread.
  StepBreaker(const Session& session, Backend& backend, std::function<bool()> stops)
      : session_(session), backend_(backend), stops_(std::move(stops)) {}

  /// Throws StepBroken where the step is to end and has not yet begun to write what outlives it.
  void begin(const Work& work) override;

 private:
  const Session& session_;
  Backend& backend_;
  std::function<bool()> stops_;
  double asked_seconds_ = 0;  // predicted, of what the device may not have done yet
};

}  // namespace tokamak
