// Checks that run once each, on a thread of their own, from when they are first asked for.
// Tests: tests/data/background_checks_test.cpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tokamak {

class BackgroundChecks {
 public:
  /// A check throws if something is wrong.
  explicit BackgroundChecks(std::vector<std::function<void()>> checks);
  BackgroundChecks(const BackgroundChecks&) = delete;
  BackgroundChecks& operator=(const BackgroundChecks&) = delete;
  /// Waits for the check under way only.
  ~BackgroundChecks();

  /// Asks for a check, from any thread; costs nothing where it was asked for before. Throws what the first that failed
  /// has thrown.
  void ask(size_t check);

  /// Returns when all checks asked for so far are done; throws as ask() does.
  void wait();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void start_thread();
  void work();
  void run_next(Lock& lock);

  std::vector<std::function<void()>> checks_;
  std::unique_ptr<std::atomic<bool>[]> asked_;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<size_t> waiting_;
  int running_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;  // from the first check on
};

}  // namespace tokamak
