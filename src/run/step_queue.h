// The steps of a run, one after the other on a thread of their own, while the host prepares the next and reads what
// the last ones gave. Tests: tests/run/step_queue_test.cpp.
#pragma once

#include "checkpoint/metrics.h"
#include "exec/task_queue.h"
#include "run/rank_decisions.h"
#include "run/session.h"
#include "run/step_breaker.h"

#include <chrono>
#include <deque>
#include <optional>

namespace tokamak {

class StepQueue {
 public:
  using Clock = std::chrono::steady_clock;

  /// Asked on the steps' thread before a step begins, with what this rank knows of it: what all ranks say.
  using Before = std::function<StepNews(const StepNews& mine)>;

  /// `session` and `backend` must outlive the queue. Without `before` every step runs.
  /// `progress`: of this rank, as is noted there; null: nowhere.
  StepQueue(Session& session, Backend& backend, Before before = {}, RankProgress* progress = nullptr);
  /// From now on a step that takes long (kBreakableSeconds) can end between two kernels, by `stops`. For one rank
  /// alone.
  void break_long_steps(std::function<bool()> stops);
  /// The same of several that a host computes, where `check` throws: others are lost.
  void break_lost_steps(std::function<void()> check);

  /// Runs a task on the steps' thread, when the steps before were handed to the backend, and waits for it. Whatever
  /// computes goes there: OpenMP keeps a team for every thread that ever ran a loop, and with more threads than cores
  /// it puts them to sleep between kernels (a step of a small model took ten times as long).
  void run(std::function<void()> task) { tasks_.run(std::move(task)); }

  /// Hands over a step. `known` is what is known before it has run: step (counted from 1), lr, and data_wait_ms, which
  /// have just passed and count for the step, unless one before it ran meanwhile. Waits while a few steps wait already.
  /// `failure`: why it cannot run (then there are no batches); empty: it can.
  void submit(std::vector<Batch> batches, const StepMetrics& known, const std::string& failure = "");
  /// Waits for all steps.
  void finish();
  /// The steps that have run since the last call, in order: what is known, ms and what the step gave. Where the device
  /// has a queue, its own clock says how long they ran: the host, which hands over the next, sees their ends late. Does
  /// not wait;
  /// throws what a step has thrown.
  std::vector<StepMetrics> take();
  /// The same where a step has thrown: waits until nothing runs any more, and throws nothing.
  std::vector<StepMetrics> take_last();
  /// Why no more steps run, and which was the last that did; steps behind it are dropped. After finish() all ranks know
  /// the same.
  struct End {
    int64_t last_step;
    StepNews news;
  };
  std::optional<End> end() const;
  /// When the first step had run; it has when take() gave it.
  std::optional<Clock::time_point> first_end() const;

 private:
  struct Pending {
    PendingStep step;
    Clock::time_point wanted;  // when its data was asked for
    Clock::time_point begin;
    StepMetrics metrics;
    bool behind;                                     // another one that runs when it is handed over
    std::unique_ptr<TimeMark> begin_mark, end_mark;  // of what the device does for it; null: the host's clock tells
  };

  bool goes_on(int64_t step, const std::string& failure);
  void start(const std::vector<Batch>& batches, Clock::time_point wanted, const StepMetrics& known);
  void end_after(int64_t last_step, const StepNews& news);
  double limit(double seconds, size_t steps) const;
  void take_time(Pending& ended);
  size_t steps_ahead() const;
  void collect(size_t ahead);
  StepResult wait_for(Pending& pending);

  Session& session_;
  Backend& backend_;
  Before before_;
  RankProgress* progress_;
  std::optional<StepBreaker> breaker_;   // of the steps' thread
  double breakable_seconds_ = 0;         // that a step takes, from which on it is broken
  double last_seconds_;                  // that a step ran, or is expected to; of the steps' thread
  std::deque<Pending> pending_;          // of the steps' thread
  Clock::time_point last_end_;           // of the steps' thread
  std::unique_ptr<TimeMark> last_mark_;  // the same by the device's clock; null: the host's tells
  mutable std::mutex mutex_;             // of what follows
  std::optional<Clock::time_point> first_end_;
  std::optional<End> end_;
  std::vector<StepMetrics> finished_;
  TaskQueue tasks_;  // last: its thread uses the others
};

}  // namespace tokamak
