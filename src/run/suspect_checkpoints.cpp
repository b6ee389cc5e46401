#include "run/suspect_checkpoints.h"

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "run/rank_decisions.h"
#include "run/slot_check.h"

#include <algorithm>
#include <vector>

namespace tokamak {

namespace fs = std::filesystem;

bool set_suspects_aside(const fs::path& run, int64_t verified) {
  fs::path folder = checkpoints_folder(run);
  std::vector<fs::path> all = list_checkpoints(folder);
  auto is_verified = [&](const fs::path& one) { return step_of_checkpoint(one) <= verified; };
  if (verified > 0 && std::ranges::none_of(all, is_verified)) return false;
  for (const fs::path& one : all) {
    if (is_verified(one)) continue;
    fs::path aside = folder / ("suspect_" + one.filename().string());
    std::error_code absent;
    fs::remove_all(aside, absent);  // of an earlier time
    fs::rename(one, aside);
  }
  if (fs::exists(folder)) sync_folder(folder);
  return true;
}

void go_back(const MeshRanks* ranks, const fs::path& run, int64_t verified, const std::string& wrong) {
  bool is_left = leads(ranks) && set_suspects_aside(run, verified);
  if (!any_of(ranks, is_left))
    user_error("[train.verify_every] {}; no checkpoint of step {}, the last one verified, is left", wrong, verified);
  throw CorruptedStep(fmt::format("[train.verify_every] {}; the run goes back to step {}", wrong, verified));
}

}  // namespace tokamak
