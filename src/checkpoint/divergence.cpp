#include "checkpoint/divergence.h"

#include "checkpoint/checkpoint_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace tokamak {
namespace {

namespace fs = std::filesystem;

std::string name(const std::vector<int64_t>& steps) {
  std::string_view many = steps.size() == 1 ? "" : "s";
  return fmt::format("the checkpoint{} of step{} {}", many, many, fmt::join(steps, ", "));
}

}  // namespace

std::string advise_after_divergence(const fs::path& out, int64_t first, const std::string& change) {
  std::vector<int64_t> before, same;
  for (const fs::path& checkpoint : list_checkpoints(checkpoints_folder(out))) {
    int64_t step = step_of_checkpoint(checkpoint);
    (step < first - 1 ? before : same).push_back(step);
  }
  std::string folder = checkpoints_folder(out).string();
  constexpr std::string_view kSettings = "with a lower --optimizer.lr or more --optimizer.warmup_steps";
  if (before.empty() && same.empty())
    return fmt::format("{} has no checkpoint, so the same command begins anew; run it {}{}", folder,
                       change.empty() ? "" : change + ", or ", kSettings);
  std::string text = folder + " has ";
  if (!before.empty()) text += name(before);
  if (!same.empty())
    text += fmt::format("{}{}, with parameters that led to it", before.empty() ? "only " : ", and ", name(same));
  text += "; ";
  if (!same.empty() && !change.empty()) text += fmt::format("go on from there {}, or ", change);
  if (before.empty()) return text + fmt::format("begin anew with --train.resume=false, {}", kSettings);
  if (!same.empty()) text += fmt::format("remove {}: ", same.size() == 1 ? "that one" : "these");
  return text + fmt::format("the same command {}goes on after step {}; run it {}", same.empty() ? "" : "then ",
                            before.back(), kSettings);
}

}  // namespace tokamak
