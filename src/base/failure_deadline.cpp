#include "base/failure_deadline.h"

#include <condition_variable>
#include <mutex>

namespace tokamak {

// Of the thread and of subscriptions, which may outlive each other.
struct FailureDeadline::State {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::string reason;  // empty: nothing has failed
  std::chrono::milliseconds patience;
};

FailureDeadline::FailureDeadline(std::chrono::milliseconds patience, Late late) : state_(std::make_shared<State>()) {
  state_->patience = patience;
  thread_ = std::jthread([state = state_, late = std::move(late)](const std::stop_token& in_time) {
    std::unique_lock lock(state->mutex);
    if (!state->changed.wait(lock, in_time, [&] { return !state->reason.empty(); })) return;
    auto begin = std::chrono::steady_clock::now();
    for (std::chrono::milliseconds known{0}; known != state->patience && !in_time.stop_requested();) {
      known = state->patience;
      state->changed.wait_until(lock, in_time, begin + known, [&] { return known != state->patience; });
    }
    if (in_time.stop_requested()) return;
    std::string reason = state->reason;
    lock.unlock();
    late(reason);
  });
}

FailureDeadline::~FailureDeadline() = default;  // the thread is asked to stop, and joined

void FailureDeadline::watch(StoreClient& store) {
  store.on_failure([state = state_](const std::string& reason) {
    std::lock_guard lock(state->mutex);
    if (state->reason.empty()) state->reason = reason;
    state->changed.notify_all();
  });
}

void FailureDeadline::allow(std::chrono::milliseconds patience) {
  std::lock_guard lock(state_->mutex);
  state_->patience = patience;
  state_->changed.notify_all();
}

}  // namespace tokamak
