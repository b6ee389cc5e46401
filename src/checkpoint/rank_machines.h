// Which ranks share a machine's memory, and which rank of another machine keeps a copy of what each of them has, so
// that a machine that is lost takes nothing with it. Pure. Tests: tests/checkpoint/rank_machines_test.cpp.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

class RankMachines {
 public:
  /// By rank: what is the same text for those of one machine, and the machine's name for messages. `rank`: this one.
  RankMachines(const std::vector<std::string>& places, std::vector<std::string> hosts, int rank);

  int count() const { return int(members_.size()); }
  int ranks() const { return int(hosts_.size()); }
  int rank() const { return rank_; }
  /// The first rank of this one's machine.
  int first() const { return members_[size_t(machine_)].front(); }
  bool is_first() const { return first() == rank_; }
  /// The first ranks of all machines.
  std::vector<int> firsts() const;
  const std::vector<std::string>& hosts() const { return hosts_; }

  /// The rank of the next machine that keeps copies of what `rank` has; with one machine alone a rank of that.
  int keeper_of(int rank) const;
  /// The ranks whose copies `rank` keeps, of the machine before.
  std::vector<int> kept_by(int rank) const;
  /// The most that one rank keeps.
  int most_kept() const;

 private:
  std::vector<std::vector<int>> members_;  // by machine
  std::vector<int> machines_;              // by rank
  std::vector<std::string> hosts_;
  int rank_, machine_;
};

}  // namespace tokamak
