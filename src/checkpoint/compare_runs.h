// Where two runs part: at which step, by their metrics, and in which tensors, by checkpoints of a step that both have.
// Tests: tests/checkpoint/compare_runs_test.cpp, tests/e2e/diff_test.cpp.
#pragma once

#include "checkpoint/metrics.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

struct RunDifference {
  int64_t steps_a = 0, steps_b = 0;  // the last that metrics tell of
  int64_t common = 0;                // steps that both tell of
  int64_t digests = 0;               // of them, with a digest in both
  std::optional<int64_t> first;      // of these the first that differs; nothing: none does
  std::vector<std::string> what;     // differs in it: "loss", "gradient norm", "digest"
  StepMetrics a, b;                  // of it
  int64_t same_digest = 0;           // the last step before it with equal digests; 0: none
  /// Checkpoints to look into, of one step: the first common one from there on; where no step differs, the last.
  std::optional<std::filesystem::path> checkpoint_a, checkpoint_b;
};

/// Of two run folders. UserError where one has no metrics, or there is no step that both tell of.
RunDifference compare_runs(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace tokamak
