#include "exec/task_queue.h"

#include "base/parallel.h"

namespace tokamak {

TaskQueue::TaskQueue(size_t depth) : depth_(depth), thread_([this] { work(); }) {}

TaskQueue::~TaskQueue() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TaskQueue::submit(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.size() < depth_ || error_; });
  if (error_) std::rethrow_exception(error_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void TaskQueue::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return (tasks_.empty() && !busy_) || error_; });
  if (error_) std::rethrow_exception(error_);
}

void TaskQueue::run(std::function<void()> task) {
  submit(std::move(task));
  wait();
}

void TaskQueue::check() {
  std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void TaskQueue::work() {
  set_num_threads(num_threads());  // libraries called from here count threads for each caller by itself
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !tasks_.empty() || closing_; });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    changed_.notify_all();  // there is room for one more
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
