// All checkpoints of a run as their state.json tells, and which of them are not needed any more. Tests:
// tests/checkpoint/checkpoint_test.cpp.
#pragma once

#include "checkpoint/checkpoint_state.h"

#include <set>

namespace tokamak {

struct ListedCheckpoint {
  std::filesystem::path path;
  CheckpointRecord record;
};

struct CheckpointListing {
  std::vector<ListedCheckpoint> readable;      // written last first
  std::vector<std::filesystem::path> damaged;  // state.json cannot be read
  std::vector<std::string> reasons;            // of these
};

/// Of the folder <out>/checkpoints.
CheckpointListing read_checkpoints(const std::filesystem::path& checkpoints);

/// What is said when all of them were looked at, for `reasons`, or until one was found: UserError when all are damaged,
/// else a warning of each.
void settle_search(const std::filesystem::path& out, bool found, const std::vector<std::string>& reasons,
                   std::vector<std::string>* warnings);

/// What is kept whatever its age, by step; 0: none.
struct MarkedSteps {
  int64_t good = 0;  // known to be good, as the newest tells
  int64_t best = 0;  // by the link `best`; where the file system has no links, as the newest tells
};
MarkedSteps marked_steps(const std::filesystem::path& checkpoints, const CheckpointListing& listing);

/// Those that go by the rule, apart from the ones of steps `kept`. The one that was written last always stays.
std::vector<std::filesystem::path> superfluous(const CheckpointListing& listing, const KeepRule& rule,
                                               const std::set<int64_t>& kept);

}  // namespace tokamak
