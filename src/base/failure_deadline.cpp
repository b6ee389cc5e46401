#include "base/failure_deadline.h"

#include <condition_variable>
#include <mutex>

namespace tokamak {

// Of the thread and of subscriptions, which may outlive each other.
struct FailureDeadline::State {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::string reason;  // empty: nothing has failed
};

FailureDeadline::FailureDeadline(std::chrono::milliseconds patience, Late late) : state_(std::make_shared<State>()) {
  thread_ = std::jthread([state = state_, patience, late = std::move(late)](const std::stop_token& in_time) {
    std::unique_lock lock(state->mutex);
    if (!state->changed.wait(lock, in_time, [&] { return !state->reason.empty(); })) return;
    state->changed.wait_for(lock, in_time, patience, [] { return false; });
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

}  // namespace tokamak
