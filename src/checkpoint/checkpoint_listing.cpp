#include "checkpoint/checkpoint_listing.h"

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"

#include <algorithm>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// Of another run in the same folder, which began anew, are those behind the newest.
bool is_multiple(const CheckpointState& state, const KeepRule& rule, int64_t newest) {
  return rule.every > 0 && state.step > 0 && state.step % rule.every == 0 && state.step <= newest;
}

}  // namespace

CheckpointListing read_checkpoints(const fs::path& checkpoints) {
  CheckpointListing listing;
  for (const fs::path& path : list_checkpoints(checkpoints)) {
    try {
      listing.readable.push_back({path, read_record(path)});
    } catch (const UserError& error) {
      listing.damaged.push_back(path);
      listing.reasons.push_back(error.what());
    }
  }
  std::stable_sort(
      listing.readable.begin(), listing.readable.end(),
      [](const ListedCheckpoint& a, const ListedCheckpoint& b) { return a.record.serial > b.record.serial; });
  return listing;
}

void settle_search(const fs::path& out, bool found, const std::vector<std::string>& reasons,
                   std::vector<std::string>* warnings) {
  if (!found && !reasons.empty())
    user_error(
        "[checkpoint] {}: expected a good checkpoint, got {} damaged; the first: {}. Restore one from a copy, or "
        "start afresh with another train.out",
        checkpoints_folder(out).string(), reasons.size(), reasons.front());
  if (warnings)
    for (const std::string& reason : reasons) warnings->push_back("skipped a damaged checkpoint: " + reason);
}

MarkedSteps marked_steps(const fs::path& checkpoints, const CheckpointListing& listing) {
  MarkedSteps marked;
  if (!listing.readable.empty()) {
    const CheckpointState& newest = listing.readable.front().record.state;
    marked = {newest.good.step, newest.best};
  }
  std::error_code none;
  fs::path best = fs::read_symlink(checkpoints / "best", none).filename();
  if (is_checkpoint_name(best.string())) marked.best = step_of_checkpoint(best);
  return marked;
}

// What cannot be read goes first: it is the oldest as far as anyone can tell.
std::vector<fs::path> superfluous(const CheckpointListing& listing, const KeepRule& rule,
                                  const std::set<int64_t>& kept) {
  std::vector<fs::path> gone;
  if (rule.last < 1) return gone;
  auto is_kept = [&](const fs::path& path) {
    int64_t step = step_of_checkpoint(path);
    return step > 0 && kept.contains(step);
  };
  int64_t newest = listing.readable.empty() ? 0 : listing.readable.front().record.state.step, counted = 0;
  for (const ListedCheckpoint& checkpoint : listing.readable) {
    const CheckpointState& state = checkpoint.record.state;
    bool is_last = state.is_extra ? &checkpoint == &listing.readable.front() : counted++ < rule.last;
    if (!is_last && !is_kept(checkpoint.path) && !is_multiple(state, rule, newest)) gone.push_back(checkpoint.path);
  }
  for (const fs::path& path : listing.damaged)
    if (counted++ >= rule.last && !is_kept(path)) gone.push_back(path);
  return gone;
}

}  // namespace tokamak
