#include "data/background_checks.h"

#include <system_error>
#include <utility>

namespace tokamak {

BackgroundChecks::BackgroundChecks(std::vector<std::function<void()>> checks)
    : checks_(std::move(checks)), asked_(std::make_unique<std::atomic<bool>[]>(checks_.size())) {}

BackgroundChecks::~BackgroundChecks() {
  {
    Lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundChecks::ask(size_t check) {
  if (failed_) {
    Lock lock(mutex_);
    std::rethrow_exception(error_);
  }
  if (asked_[check].load(std::memory_order_relaxed) || asked_[check].exchange(true)) return;
  Lock lock(mutex_);
  waiting_.push_back(check);
  if (!thread_.joinable()) start_thread();
  lock.unlock();
  changed_.notify_all();
}

void BackgroundChecks::start_thread() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    // No thread can be had: wait() does the work.
  }
}

void BackgroundChecks::work() {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    run_next(lock);
  }
}

void BackgroundChecks::run_next(Lock& lock) {
  size_t check = waiting_.front();
  waiting_.pop_front();
  ++running_;
  lock.unlock();
  std::exception_ptr error;
  try {
    checks_[check]();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  --running_;
  if (error && !error_) error_ = error;
  if (error) failed_ = true;
  changed_.notify_all();
}

void BackgroundChecks::wait() {
  Lock lock(mutex_);
  while (!waiting_.empty() && !error_) run_next(lock);
  changed_.wait(lock, [&] { return running_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

}  // namespace tokamak
