// Ranks 1, 2, ... of a run as processes of this machine, started by rank 0 with the environment of torchrun. They end
// with it, however that came about.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/store_server.h"

namespace tokamak {

class LocalRanks {
 public:
  LocalRanks() = default;
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  /// As end().
  ~LocalRanks() { end(); }

  /// Starts this program again, with the same arguments, for each rank but 0, and tells `store`, which they join and
  /// which outlives this, how each of them ends. To be called once, on the main thread: they live as long as it does.
  void start(int world, const std::string& token, StoreServer& store);

  /// Waits for them for some seconds, then ends them; also stopped ones.
  void end();

  /// Until then one that has been stopped for kStopped (as by SIGSTOP) is ended, and told. Afterwards the ranks find
  /// such ones themselves (cli/hangs.h), which takes steps that have a pace.
  void leave_stopped_ones() { leaves_stopped_ones_ = true; }
  static constexpr std::chrono::seconds kStopped{3};

 private:
  void watch(const std::stop_token& closing, StoreServer& store);
  void set_starting(int rank);
  std::map<pid_t, int> started() const;
  void end_stopped(StoreServer& store);
  void reap(StoreServer& store);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<pid_t, int> ranks_;          // by process; those that have not ended
  int starting_ = 0;                    // the rank whose process is being made; 0: none
  std::map<pid_t, int> stopped_looks_;  // how often in a row they were seen stopped
  std::atomic<bool> leaves_stopped_ones_ = false;
  std::jthread watcher_;  // ends when all have
};

/// Whether LocalRanks has started this process.
bool is_local_rank();

/// In a process that LocalRanks has started: sees to it that the system ends it end_times::kWithoutLeader after its
/// parent is gone, if it has not said why and ended by itself before. Elsewhere nothing. To be called first, and again
/// after exec.
void end_with_leader();

/// In a process that LocalRanks has started: kills the one that has, which does not answer (it may be stopped), and
/// would keep what it holds, such as the lock of the run's folder. Elsewhere nothing: others may see to it.
void end_stopped_leader();

/// Afterwards such a process has end_times::kToSave.
void outlive_leader();

}  // namespace tokamak
