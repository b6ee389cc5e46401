// What the steps of a rank did, and when. Tests: tests/profile/profiler_test.cpp.
#pragma once

#include "backend/backend.h"
#include "exec/work_observer.h"
#include "profile/time_breakdown.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace tokamak {

/// A piece of work and its times, in seconds from the recorder's start.
struct RecordedWork {
  Work::Kind kind = Work::Kind::kLaunch;
  const Plan* plan = nullptr;
  int index = -1;
  int stream = 0;
  int64_t bytes = 0;
  std::string name;                     // of inputs and transfers
  double begin = 0, end = 0;            // on the device
  std::vector<DeviceActivity> kernels;  // what it was there, by time; empty where only begin and end are known
  double asked = 0, asked_until = 0;    // on the host, when it was asked for

  /// Of a launch: its node.
  const Node& node() const;
  /// That the device was busy with it.
  double seconds() const;
};

class WorkRecorder : public WorkObserver {
 public:
  /// Must not outlive the backend.
  explicit WorkRecorder(Backend& backend) : backend_(backend) {}

  /// Forgets everything and begins, on the thread that works; waits for stream 0.
  void start();
  /// The same, watching the device by its tools where it has some, until take().
  void start_watching();
  /// Seconds since then; from any thread.
  double now() const;
  /// When it began, by a clock that all processes of the machine share.
  double start_seconds() const { return std::chrono::duration<double>(start_.time_since_epoch()).count(); }
  void begin(const Work& work) override;
  void end() override;
  /// How the device's times are known.
  std::string clock() const;
  /// All work since the start, in the order in which it began to be asked for; waits for it.
  std::vector<RecordedWork> take();

 private:
  using Clock = std::chrono::steady_clock;
  struct Marks {
    std::unique_ptr<TimeMark> begin, end;  // null where the host's clock tells
  };

  void take_marks();
  void take_trace();

  Backend& backend_;
  Clock::time_point start_;
  std::unique_ptr<TimeMark> start_mark_;
  std::unique_ptr<DeviceTrace> trace_;  // null: marks tell
  std::vector<RecordedWork> works_;
  std::vector<Marks> marks_;   // of each
  std::vector<size_t> until_;  // of each: where what it contains ends
  std::vector<size_t> open_;   // what has begun and not ended
};

/// Adds what it counts as in a breakdown.
void add_spans(const RecordedWork& work, std::vector<ActivitySpan>& spans);

}  // namespace tokamak
