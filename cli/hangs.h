// Ranks that hang, and processes that must end because of them: how base/hang_watch.h meets ranks that are processes or
// threads. Tests: tests/e2e/hang_test.cpp.
#pragma once

#include "base/hang_watch.h"
#include "base/store_client.h"
#include "cli/failure_place.h"
#include "config/config.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// Who tells the user why the run has failed: the rank that leads, or where that is gone, each of the others.
bool tells(const StoreClient& store);

/// Ends this process, which does not do so by itself; says why where it is the one that tells.
[[noreturn]] void end_late_process(const std::string& reason, bool tells);

/// Of a process that is one rank: all ranks answer by way of the store. All of them make it at the same time.
class ProcessHangs {
 public:
  ProcessHangs(const RunConfig& config, StoreClient& store, const std::string& device);
  ~ProcessHangs();

  const std::shared_ptr<RankProgress>& progress() const { return progress_; }
  /// For messages of this rank's failures, and of others'.
  FailurePlace failure_place() const { return {names_, size_t(store_.rank()), progress_}; }

 private:
  HangWatch::Run watched();
  std::vector<std::string> exchange_names(const RunConfig& config, const std::string& device);
  RankAnswers ask(double seconds);
  void fail(const std::string& reason);

  StoreClient& store_;
  std::shared_ptr<RankProgress> progress_ = std::make_shared<RankProgress>();
  bool leader_answers_ = true;      // of the watch's thread
  std::vector<std::string> names_;  // of all ranks
  HangWatch watch_;                 // last: its thread uses the others
};

/// Of a process whose threads are all ranks.
class ThreadHangs {
 public:
  ThreadHangs(const RunConfig& config, int ranks);

  const std::vector<std::shared_ptr<RankProgress>>& progress() const { return progress_; }
  FailurePlace failure_place(int rank) const { return {names(), size_t(rank), progress_[size_t(rank)]}; }
  /// Begins; `abort` ends the calls of all ranks.
  void watch(std::function<void(const std::string&)> abort);

 private:
  std::vector<std::string> names() const;
  std::string failure() const;
  void fail(const std::string& reason);

  const RunConfig& config_;
  std::vector<std::shared_ptr<RankProgress>> progress_;
  std::function<void(const std::string&)> abort_;
  mutable std::mutex mutex_;
  std::string failure_;             // under the mutex
  std::optional<HangWatch> watch_;  // last: its thread uses the others
};

}  // namespace tokamak
