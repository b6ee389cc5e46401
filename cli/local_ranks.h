// Ranks 1, 2, ... of a run as processes of this machine, started by rank 0 with the environment of torchrun.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tokamak {

class LocalRanks {
 public:
  LocalRanks() = default;
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  /// Waits for them for some seconds, then ends them.
  ~LocalRanks();

  /// Starts this program again, with the same arguments, for each rank but 0. They join the store at `port`.
  void start(int world, int port, const std::string& token);

 private:
  std::vector<pid_t> processes_;
};

}  // namespace tokamak
