// The ranks of one start that an agent has on its machine, as processes with the environment of torchrun.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/machine_roster.h"

namespace tokamak {

class AgentRanks {
 public:
  AgentRanks() = default;  // none
  /// Starts them, with these variables in their environment, each "NAME=value". UserError where the system starts no
  /// more processes.
  AgentRanks(const StartOrder& order, const StartOrder::Member& mine, const std::vector<std::string>& variables);
  AgentRanks(const AgentRanks&) = delete;
  AgentRanks& operator=(const AgentRanks&) = delete;
  /// Kills those that live.
  ~AgentRanks();

  /// Looks which have ended. One that is stopped (SIGSTOP) while this process is not is killed after ten seconds of
  /// looks, or at once where `run_is_over`.
  void look(bool run_is_over);
  void send(int signal_number);

  bool have_ended() const { return alive_ == 0; }
  /// The exit status of rank 0, where that has ended by itself in another way than by its death.
  std::optional<int> end_of_first() const;
  /// What one of them died of by itself: "the process of rank 3 was ended by signal 9 (Killed)"; empty: none.
  std::string death() const;
  /// Whether one has ended as it has lost others.
  bool have_lost_others() const;

 private:
  struct Rank {
    int rank;
    pid_t process;
    std::optional<int> end;  // as waitpid tells it
    int stopped_looks = -1;  // negative: it is not stopped
  };
  void look_at(Rank& rank, bool run_is_over);

  std::vector<Rank> ranks_;
  size_t alive_ = 0;
};

}  // namespace tokamak
