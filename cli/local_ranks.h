// Ranks 1, 2, ... of a run as processes of this machine, started by rank 0 with the environment of torchrun. They end
// with it, however that came about.
#pragma once

#include <sys/types.h>

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
  /// Waits for them for some seconds, then ends them; also stopped ones.
  ~LocalRanks() = default;

  /// Starts this program again, with the same arguments, for each rank but 0, and tells `store`, which they join and
  /// which outlives this, how each of them ends. To be called once, on the main thread: they live as long as it does.
  void start(int world, const std::string& token, StoreServer& store);

 private:
  void watch(const std::stop_token& closing, StoreServer& store);
  void reap(StoreServer& store);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<pid_t, int> ranks_;  // by process; those that have not ended
  std::jthread watcher_;        // ends when all have
};

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
