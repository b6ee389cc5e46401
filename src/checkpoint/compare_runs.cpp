#include "checkpoint/compare_runs.h"

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"

#include <cmath>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

std::map<int64_t, StepMetrics> metrics_of(const fs::path& run) {
  fs::path file = run / "metrics.jsonl";
  std::map<int64_t, StepMetrics> steps = read_metrics(file);
  if (steps.empty())
    user_error("[diff] {}: expected a run folder with steps in metrics.jsonl, got {}; check the path", run.string(),
               fs::exists(file) ? "no step" : "no such file");
  return steps;
}

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::vector<std::string> differences(const StepMetrics& a, const StepMetrics& b) {
  std::vector<std::string> what;
  if (!is_same(a.loss, b.loss)) what.emplace_back("loss");
  if (!is_same(a.grad_norm, b.grad_norm)) what.emplace_back("gradient norm");
  if (a.digest && b.digest && a.digest != b.digest) what.emplace_back("digest");
  return what;
}

std::map<int64_t, fs::path> checkpoints_of(const fs::path& run) {
  std::map<int64_t, fs::path> checkpoints;
  for (const fs::path& path : list_checkpoints(checkpoints_folder(run))) checkpoints[step_of_checkpoint(path)] = path;
  return checkpoints;
}

void choose_checkpoints(RunDifference& difference, const fs::path& a, const fs::path& b) {
  std::map<int64_t, fs::path> of_b = checkpoints_of(b);
  for (const auto& [step, path] : checkpoints_of(a)) {
    auto other = of_b.find(step);
    if (other == of_b.end() || (difference.first && step < *difference.first)) continue;
    difference.checkpoint_a = path;
    difference.checkpoint_b = other->second;
    if (difference.first) return;
  }
}

}  // namespace

RunDifference compare_runs(const fs::path& a, const fs::path& b) {
  std::map<int64_t, StepMetrics> of_a = metrics_of(a), of_b = metrics_of(b);
  RunDifference difference{.steps_a = of_a.rbegin()->first, .steps_b = of_b.rbegin()->first};
  for (const auto& [step, mine] : of_a) {
    auto other = of_b.find(step);
    if (other == of_b.end()) continue;
    ++difference.common;
    bool has_digests = mine.digest && other->second.digest;
    if (has_digests) ++difference.digests;
    if (difference.first) continue;
    difference.what = differences(mine, other->second);
    if (difference.what.empty()) {
      if (has_digests) difference.same_digest = step;
      continue;
    }
    difference.first = step;
    difference.a = mine;
    difference.b = other->second;
  }
  if (difference.common == 0)
    user_error("[diff] expected runs with steps in common, got steps up to {} in {} and up to {} in {}",
               difference.steps_a, a.string(), difference.steps_b, b.string());
  choose_checkpoints(difference, a, b);
  return difference;
}

}  // namespace tokamak
