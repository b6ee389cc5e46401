// Which rank has failed, where, and in which step: what its message tells beside the cause. Tests:
// tests/e2e/rank_failure_test.cpp.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/rank_progress.h"

namespace tokamak {

/// A message with each rank's name where it is mentioned first: "rank 1" and "rank 1 on node7" are "rank 1 on node7
/// (GPU 0)".
std::string name_ranks(const std::string& text, const std::vector<std::string>& names);

class FailurePlace {
 public:
  /// `names`: of all ranks, "rank 1 on node7 (GPU 0)"; `rank`: this one.
  FailurePlace(std::vector<std::string> names, size_t rank, std::shared_ptr<RankProgress> progress)
      : names_(std::move(names)), rank_(rank), progress_(std::move(progress)) {}

  /// Of this rank: "rank 1 on node7 (GPU 0) failed in step 12: ".
  std::string of_own(const std::string& cause) const;
  /// Of others, as "rank 1 on node7 is gone" or "rank 0 lost its connection to rank 1": with host and device of each,
  /// and the step that this rank was in, where the text names none.
  std::string of_other(const std::string& why) const;

 private:
  std::vector<std::string> names_;
  size_t rank_;
  std::shared_ptr<RankProgress> progress_;
};

/// Whether a kernel or its device has failed: neither a mistake of the user's nor a lack of something.
bool is_device_failure(const std::exception& error);

}  // namespace tokamak
