#include "run/rank_decisions.h"

#include "backend/agreement.h"
#include "base/error.h"
#include "config/config.h"
#include "config/json.h"
#include "tune/tune.h"

#include <algorithm>

namespace tokamak {

void meet(const MeshRanks* ranks) {
  if (ranks) ranks->world().exchange("");
}

StepNews tell_all(const MeshRanks* ranks, const StepNews& mine) {
  if (!ranks) return mine;
  StepNews all;
  for (const std::string& theirs : ranks->world().exchange((mine.stops ? "stop" : "go  ") + mine.failure)) {
    all.stops |= theirs.starts_with("stop");
    if (all.failure.empty()) all.failure = theirs.substr(4);
  }
  return all;
}

bool any_of(const MeshRanks* ranks, bool mine) { return !first_of(ranks, mine ? "yes" : "").empty(); }

int64_t least_of(const MeshRanks* ranks, int64_t mine) {
  if (!ranks) return mine;
  for (const std::string& theirs : ranks->world().exchange(std::to_string(mine)))
    mine = std::min<int64_t>(mine, std::stoll(theirs));
  return mine;
}

std::string first_of(const MeshRanks* ranks, const std::string& mine) {
  if (!ranks) return mine;
  for (std::string& theirs : ranks->world().exchange(mine))
    if (!theirs.empty()) return std::move(theirs);
  return {};
}

void require_same(const MeshRanks* ranks, const std::string& name, const std::string& mine) {
  Fact fact{name, mine};
  if (ranks) require_agreement(ranks->world(), {&fact, 1});
}

std::string of_leader(const MeshRanks* ranks, const std::string& mine) {
  return ranks ? adopt(ranks->world(), mine) : mine;
}

RunConfig of_leader(const MeshRanks* ranks, const RunConfig& mine) {
  return ranks ? run_config_from_json(of_leader(ranks, to_json(mine)), "rank 0") : mine;
}

Target of_leader(const MeshRanks* ranks, const Target& mine) {
  return ranks ? parse_target(of_leader(ranks, print(mine))) : mine;
}

void lead_alone(const MeshRanks* ranks, const std::function<void(const std::function<void()>& not_yet)>& work) {
  if (leads(ranks)) work([&] { any_of(ranks, true); });
  while (any_of(ranks, false)) {
  }
}

void give_choices(const MeshRanks* ranks, const Tuning& tuning, Backend& backend) {
  of_leader(ranks, run_choices(tuning, backend, true));
}

void await_choices(const MeshRanks* ranks, Tuning& tuning, Backend& backend) {
  std::string chosen = of_leader(ranks, "");
  if (!chosen.empty() && !take_choices(chosen, tuning, backend))
    user_error(
        "[ranks] expected GPUs and libraries of the same kind on all ranks, got others than those of rank 0; start the "
        "run on machines that are alike");
}

}  // namespace tokamak
