// Runs tasks one after the other on a thread of its own, so that the host goes on while a step runs: what a CUDA stream
// is to the GPU. Tests: tests/exec/stream_test.cpp.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tokamak {

class Stream {
 public:
  /// At most `depth` tasks wait; submit() blocks while that many do.
  explicit Stream(size_t depth = 2);
  /// Waits for all tasks.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void submit(std::function<void()> task);
  /// Waits until everything submitted has run; throws what a task has thrown (tasks after it are dropped).
  void wait();
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
