#include "run/step_queue.h"

#include "base/error.h"
#include "run/progress.h"

#include <algorithm>

namespace tokamak {
namespace {

// Steps that the backend holds beyond the one that runs: enough that the device never waits for the host. What it holds
// runs to its end, so of long steps, beside which the host's time is nothing, it holds none.
constexpr size_t kStepsAhead = 1;
constexpr double kLongSeconds = 2;
constexpr double kBreakableSeconds = 10;
constexpr double kBreakableWhenLost = 0.5;  // those who are left should end at once

using Milliseconds = std::chrono::duration<double, std::milli>;

}  // namespace

StepQueue::StepQueue(Session& session, Backend& backend, Before before, RankProgress* progress)
    : session_(session), backend_(backend), before_(std::move(before)), progress_(progress),
      last_seconds_(session.run().seconds) {
  tasks_.submit([&backend] { backend.use_in_this_thread(); });
}

// Steps that take longer than this are not to be waited for, or held behind another.
double StepQueue::limit(double seconds, size_t steps) const {
  double grace = double(session_.resolved().asked.train.grace_seconds);
  return grace > 0 ? std::min(seconds, kShareOfGrace * grace / double(steps)) : seconds;
}

void StepQueue::break_long_steps(std::function<bool()> stops) {
  run([this, stops = std::move(stops)] {
    breaker_.emplace(session_, backend_, stops);
    breakable_seconds_ = limit(kBreakableSeconds, 1);
  });
}

void StepQueue::break_lost_steps(std::function<void()> check) {
  run([this, check = std::move(check)] {
    breaker_.emplace(session_, backend_, [check] { return check(), false; });
    breakable_seconds_ = kBreakableWhenLost;
  });
}

void StepQueue::submit(std::vector<Batch> batches, const StepMetrics& known, const std::string& failure) {
  auto wanted = Clock::now() - std::chrono::duration_cast<Clock::duration>(Milliseconds(known.data_wait_ms));
  tasks_.submit([this, wanted, known, failure, batches = std::move(batches)] {
    if (!goes_on(known.step, failure)) return;
    start(batches, wanted, known);
    collect(steps_ahead());
  });
}

bool StepQueue::goes_on(int64_t step, const std::string& failure) {
  if (end()) return false;
  if (!before_) return true;
  StepNews news = before_({.failure = failure});
  if (!news.stops && news.failure.empty()) return true;
  end_after(step - 1, news);
  return false;
}

void StepQueue::start(const std::vector<Batch>& batches, Clock::time_point wanted, const StepMetrics& known) {
  auto begin = Clock::now();
  if (breaker_) session_.observe_else(last_seconds_ > breakable_seconds_ ? &*breaker_ : nullptr);
  auto in = enter_step(progress_, RankPhase::kStep, known.step);
  try {
    bool behind = !pending_.empty();
    auto begin_mark = backend_.mark_time(0);
    PendingStep step = session_.submit_step(batches, known.step - 1, known.lr);
    pending_.push_back({std::move(step), wanted, begin, known, behind, std::move(begin_mark), backend_.mark_time(0)});
  } catch (const StepBroken&) {
    end_after(known.step - 1, {.stops = true});
  }
}

void StepQueue::end_after(int64_t last_step, const StepNews& news) {
  collect(0);
  std::lock_guard lock(mutex_);
  end_ = End{last_step, news};
}

// What the first step tells is not held back by the second.
size_t StepQueue::steps_ahead() const {
  return first_end() && last_seconds_ < limit(kLongSeconds, 1 + kStepsAhead) ? kStepsAhead : 0;
}

// Waits until at most `ahead` steps are under way, and takes in what is ready.
void StepQueue::collect(size_t ahead) {
  while (pending_.size() > ahead || (!pending_.empty() && pending_.front().step.ready())) {
    Pending& oldest = pending_.front();
    StepResult result = wait_for(oldest);
    take_time(oldest);
    StepMetrics metrics = oldest.metrics;
    metrics.loss = result.loss;
    metrics.grad_norm = result.grad_norm;
    metrics.applied = result.applied;
    metrics.loss_scale = result.loss_scale;
    metrics.skipped = result.skipped;
    metrics.digest = result.digest;
    if (progress_) progress_->step_done(last_seconds_);
    pending_.pop_front();
    std::lock_guard lock(mutex_);
    if (!first_end_) first_end_ = last_end_;
    finished_.push_back(metrics);
  }
}

// How long it took from when its data was asked for, or from the end of the one before it, and how long it ran.
void StepQueue::take_time(Pending& ended) {
  auto now = Clock::now();
  double& ms = ended.metrics.ms;
  if (ended.end_mark) {
    last_seconds_ = ended.end_mark->seconds_since(*ended.begin_mark);
    ms = ended.behind ? 1000 * ended.end_mark->seconds_since(*last_mark_)
                      : Milliseconds(ended.begin - ended.wanted).count() + 1000 * last_seconds_;
  } else {
    last_seconds_ = Milliseconds(now - std::max(ended.begin, last_end_)).count() / 1000;
    ms = Milliseconds(now - std::max(ended.wanted, last_end_)).count();
  }
  last_mark_ = std::move(ended.end_mark);
  last_end_ = now;
}

StepResult StepQueue::wait_for(Pending& pending) {
  if (pending.step.ready()) return pending.step.wait();
  auto in = enter_step(progress_, RankPhase::kDevice, pending.metrics.step);
  return pending.step.wait();
}

void StepQueue::finish() {
  run([this] { collect(0); });
}

std::vector<StepMetrics> StepQueue::take() {
  tasks_.check();
  std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

std::vector<StepMetrics> StepQueue::take_last() {
  try {
    tasks_.wait();
  } catch (const std::exception&) {
    // It is known already.
  }
  TOKAMAK_CHECK(pending_.empty(), "steps that are done were not told of");
  std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

std::optional<StepQueue::End> StepQueue::end() const {
  std::lock_guard lock(mutex_);
  return end_;
}

std::optional<StepQueue::Clock::time_point> StepQueue::first_end() const {
  std::lock_guard lock(mutex_);
  return first_end_;
}

}  // namespace tokamak
