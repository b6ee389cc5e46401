// Runs tasks one after the other on a thread of its own, so that the host goes on while a step runs.
// Tests: tests/exec/task_queue_test.cpp.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tokamak {

class TaskQueue {
 public:
  /// At most `depth` tasks wait; submit() blocks while that many do.
  explicit TaskQueue(size_t depth = 2);
  /// Waits for all tasks.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// Throws what a task before has thrown, as wait() does.
  void submit(std::function<void()> task);
  /// Waits until everything submitted has run; throws what a task has thrown (tasks after it are dropped).
  void wait();
  /// submit() and wait().
  void run(std::function<void()> task);
  /// Throws what a task has thrown, without waiting.
  void check();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::exception_ptr error_;
  size_t depth_;
  bool busy_ = false;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tokamak
