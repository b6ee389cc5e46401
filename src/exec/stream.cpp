#include "exec/stream.h"

#include "base/parallel.h"

namespace tokamak {

Stream::Stream(size_t depth) : depth_(depth), thread_([this] { work(); }) {}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::submit(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.size() < depth_ || error_; });
  if (error_) std::rethrow_exception(error_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void Stream::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return (tasks_.empty() && !busy_) || error_; });
  if (error_) std::rethrow_exception(error_);
}

void Stream::check() {
  std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void Stream::work() {
  set_num_threads(num_threads());  // libraries called from here count threads for each caller by itself
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !tasks_.empty() || closing_; });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (error) {
      error_ = error;
      tasks_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace tokamak
