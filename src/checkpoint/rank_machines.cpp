#include "checkpoint/rank_machines.h"

#include <algorithm>
#include <utility>

namespace tokamak {

RankMachines::RankMachines(const std::vector<std::string>& places, std::vector<std::string> hosts, int rank)
    : hosts_(std::move(hosts)), rank_(rank) {
  std::vector<std::string> seen;
  for (size_t i = 0; i < places.size(); ++i) {
    auto at = std::ranges::find(seen, places[i]);
    machines_.push_back(int(at - seen.begin()));
    if (at == seen.end()) seen.push_back(places[i]), members_.emplace_back();
    members_[size_t(machines_.back())].push_back(int(i));
  }
  machine_ = machines_[size_t(rank)];
}

std::vector<int> RankMachines::firsts() const {
  std::vector<int> firsts;
  for (const std::vector<int>& members : members_) firsts.push_back(members.front());
  return firsts;
}

int RankMachines::keeper_of(int rank) const {
  int machine = machines_[size_t(rank)];
  const std::vector<int>& own = members_[size_t(machine)];
  const std::vector<int>& next = members_[size_t((machine + 1) % count())];
  return next[size_t(std::ranges::find(own, rank) - own.begin()) % next.size()];
}

std::vector<int> RankMachines::kept_by(int rank) const {
  std::vector<int> kept;
  for (int other = 0; other < ranks(); ++other)
    if (other != rank && keeper_of(other) == rank) kept.push_back(other);
  return kept;
}

int RankMachines::most_kept() const {
  size_t most = 0;
  for (int rank = 0; rank < ranks(); ++rank) most = std::max(most, kept_by(rank).size());
  return int(most);
}

}  // namespace tokamak
