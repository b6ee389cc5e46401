// What a run writes into events.jsonl (checkpoint/event_log.h): the rank that leads does. Tests:
// tests/e2e/events_test.cpp.
#pragma once

#include "checkpoint/event_log.h"
#include "exec/mesh_ranks.h"
#include "graph/target.h"
#include "run/train_observer.h"

#include <optional>

namespace tokamak {

class RunEvents {
 public:
  /// Of the run in folder `out`, which the rank that leads has locked. All ranks make it, each with its own device.
  RunEvents(std::filesystem::path out, const Target& target, TrainObserver& observer, const MeshRanks* ranks);

  /// This start goes on after `step` steps.
  void began(int64_t step);
  /// A step of this start is recorded.
  void took(const StepMetrics& metrics) { step_seconds_ += (metrics.ms - metrics.data_wait_ms) * 1e-3; }
  /// The state after the steps so far is about to be saved; is saved, `seconds` later, in which the run stood still for
  /// `stall_seconds`.
  void saving();
  void saved(int64_t step, const std::filesystem::path& checkpoint, double seconds, double stall_seconds);
  /// Of steps whose outcome is in no save yet; and those of a start before, whose outcome this one goes on with.
  double unsaved_seconds() const { return step_seconds_; }
  void carry(double step_seconds) { step_seconds_ += step_seconds; }
  /// From now on this rank writes, which has the lock of the folder, as the one that led is gone.
  void take_over(int64_t step, const std::string& cause);
  /// From the next step on products of these kinds of weights have bf16 instead of fp8.
  void fell_back(int64_t step, const std::string& kinds);
  void ended(int64_t step, bool stopped);
  void failed(int64_t step, const std::string& cause);

  /// format_goodput of all starts; empty where nobody writes.
  std::string goodput() const;

 private:
  void add(const RunEvent& event);

  std::filesystem::path out_;
  TrainObserver& observer_;
  std::vector<RunEvent::Rank> all_;
  std::optional<EventLog> log_;  // of the rank that writes
  bool told_ = false;            // why lines are missing
  double step_seconds_ = 0;      // of steps whose state is not being saved
  double saving_seconds_ = 0;    // of those before
};

}  // namespace tokamak
