#include "train/step_queue.h"

namespace tokamak {
namespace {

// Steps that the backend holds beyond the one that runs: enough that the device never waits for the host.
constexpr size_t kStepsAhead = 1;

}  // namespace

StepQueue::StepQueue(Session& session, Backend& backend) : session_(session) {
  tasks_.submit([&backend] { backend.use_in_this_thread(); });
}

void StepQueue::submit(std::vector<Batch> batches, const StepMetrics& known) {
  tasks_.submit([this, known, batches = std::move(batches)] {
    auto begin = Clock::now();
    pending_.push_back({session_.submit_step(batches, known.step - 1, known.lr), begin, known});
    collect(first_end() ? kStepsAhead : 0);  // what the first step tells is not held back by the second
  });
}

// Waits until at most `ahead` steps are under way, and takes in what is ready.
void StepQueue::collect(size_t ahead) {
  while (pending_.size() > ahead || (!pending_.empty() && pending_.front().step.ready())) {
    Pending& oldest = pending_.front();
    StepResult result = oldest.step.wait();
    auto now = Clock::now();
    StepMetrics metrics = oldest.metrics;
    metrics.loss = result.loss;
    metrics.grad_norm = result.grad_norm;
    metrics.applied = result.applied;
    metrics.loss_scale = result.loss_scale;
    metrics.skipped = result.skipped;
    metrics.ms = std::chrono::duration<double, std::milli>(now - std::max(oldest.begin, last_end_)).count();
    last_end_ = now;
    pending_.pop_front();
    std::lock_guard lock(mutex_);
    if (!first_end_) first_end_ = now;
    finished_.push_back(metrics);
  }
}

void StepQueue::finish() {
  run([this] { collect(0); });
}

std::vector<StepMetrics> StepQueue::take() {
  tasks_.check();
  std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

std::optional<StepQueue::Clock::time_point> StepQueue::first_end() const {
  std::lock_guard lock(mutex_);
  return first_end_;
}

}  // namespace tokamak
