#include "train/rank_decisions.h"

#include "backend/agreement.h"
#include "backend/backend.h"
#include "backend/kernel_tuning.h"
#include "base/error.h"
#include "base/json.h"
#include "config/config.h"
#include "config/json.h"
#include "graph/platform.h"
#include "train/tuning_record.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace tokamak {

using nlohmann::json;

void meet(const MeshRanks* ranks) {
  if (ranks) ranks->world().exchange("");
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

std::string print_choices(const Tuning& tuning, Backend& backend) {
  TuningRecord record{tuning.measured_seconds, {{tuning.tuned_for, tuning.plain_matmuls}}};
  json text = {{"tuned_for", tuning.tuned_for},
               {"tuning", print_tuning(record)},
               {"backend", backend.tuning() ? backend.tuning()->choices() : ""}};
  return format_json(text);
}

void take_choices(const std::string& text, Tuning& tuning, Backend& backend) {
  json choices = parse_json(text);
  TuningRecord record = parse_tuning(choices.at("tuning").get<std::string>());
  tuning.tuned_for = choices.at("tuned_for").get<std::string>();
  tuning.measured_seconds = record.seconds;
  tuning.plain_matmuls = record.plain_matmuls[tuning.tuned_for];
  if (!backend.tuning()) return;
  if (!backend.tuning()->adopt_choices(choices.at("backend").get<std::string>()))
    user_error(
        "[ranks] expected GPUs and libraries of the same kind on all ranks, got others than those of rank 0; start the "
        "run on machines that are alike");
}

}  // namespace tokamak
