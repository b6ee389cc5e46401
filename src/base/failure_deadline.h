// A run that has failed must end, also where what is under way on a device or in a library does not. Tests:
// tests/base/failure_deadline_test.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/store_client.h"

namespace tokamak {

/// Gives this process some time to end by itself once the run has failed.
class FailureDeadline {
 public:
  using Late = std::function<void(const std::string& reason)>;

  /// `late` is called once, on a thread of this object, when it still lives `patience` after a run that it watches has
  /// failed. It may end the process.
  FailureDeadline(std::chrono::milliseconds patience, Late late);
  /// In time: `late` is not called any more, or has returned.
  ~FailureDeadline();
  FailureDeadline(const FailureDeadline&) = delete;
  FailureDeadline& operator=(const FailureDeadline&) = delete;

  /// The run of this store, which may be gone before this object is. To be called before others subscribe to its
  /// failure: what they do then may never end.
  void watch(StoreClient& store);

  /// From now on so much time instead.
  void allow(std::chrono::milliseconds patience);

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::jthread thread_;
};

}  // namespace tokamak
