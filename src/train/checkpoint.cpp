#include "train/checkpoint.h"

#include "base/error.h"
#include "base/file.h"
#include "train/checkpoint_folder.h"
#include "train/checkpoint_state.h"
#include "train/checkpoint_tensors.h"

#include <algorithm>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

struct Candidate {
  fs::path path;
  CheckpointRecord record;
};

struct Listing {
  std::vector<Candidate> readable;  // written last first
  std::vector<fs::path> damaged;    // state.json cannot be read
  std::vector<std::string> reasons;
};

Listing read_checkpoints(const fs::path& checkpoints) {
  Listing listing;
  for (const fs::path& path : list_checkpoints(checkpoints)) {
    try {
      listing.readable.push_back({path, read_record(path)});
    } catch (const UserError& error) {
      listing.damaged.push_back(path);
      listing.reasons.push_back(error.what());
    }
  }
  std::stable_sort(listing.readable.begin(), listing.readable.end(),
                   [](const Candidate& a, const Candidate& b) { return a.record.serial > b.record.serial; });
  return listing;
}

// The ones that cannot be read go first; they are the oldest as far as anyone can tell.
void keep_last(const fs::path& checkpoints, int64_t keep) {
  if (keep < 1) return;
  Listing listing = read_checkpoints(checkpoints);
  std::vector<fs::path> ordered;
  for (const Candidate& candidate : listing.readable) ordered.push_back(candidate.path);
  ordered.insert(ordered.end(), listing.damaged.begin(), listing.damaged.end());
  for (size_t i = size_t(keep); i < ordered.size(); ++i) remove_checkpoint(ordered[i]);
}

void verify(const fs::path& folder, const CheckpointRecord& record) {
  for (const FileRecord& file : record.files) verify_file(folder, file);
}

void write_checkpoint(const fs::path& path, const CheckpointRecord& base, const TensorStore& store) {
  StagedFolder folder(path);
  CheckpointRecord record = base;
  record.files = {save_parameters(folder.staged_path(), store), save_optimizer(folder.staged_path(), store)};
  write_record(folder.staged_path(), record);
  folder.commit();
}

}  // namespace

fs::path save_checkpoint(const fs::path& out, const CheckpointState& state, const TensorStore& store, int64_t keep) {
  fs::path checkpoints = checkpoints_folder(out), path = checkpoints / checkpoint_name(state.step);
  try {
    make_folder(checkpoints);
    sync_folder(out);
    remove_leftovers(checkpoints);
    Listing earlier = read_checkpoints(checkpoints);
    int64_t serial = earlier.readable.empty() ? 1 : earlier.readable.front().record.serial + 1;
    write_checkpoint(path, {state, serial, {}}, store);
    point_latest(path);
  } catch (const UserError& error) {
    user_error("[checkpoint] step {} could not be saved; earlier checkpoints are as they were. {}", state.step,
               error.what());
  }
  keep_last(checkpoints, keep);
  return path;
}

std::optional<FoundCheckpoint> find_checkpoint(const fs::path& out, std::vector<std::string>* warnings) {
  fs::path checkpoints = checkpoints_folder(out);
  Listing listing = read_checkpoints(checkpoints);
  std::vector<std::string> reasons = listing.reasons;
  std::optional<FoundCheckpoint> found;
  for (const Candidate& candidate : listing.readable) {
    try {
      verify(candidate.path, candidate.record);
      found = {candidate.path, candidate.record.state};
      break;
    } catch (const UserError& error) {
      reasons.push_back(error.what());
    }
  }
  if (!found && !reasons.empty())
    user_error(
        "[checkpoint] {}: expected a good checkpoint, got {} damaged; the first: {}. Restore one from a copy, or "
        "start afresh with another train.out",
        checkpoints.string(), reasons.size(), reasons.front());
  if (warnings)
    for (const std::string& reason : reasons) warnings->push_back("skipped a damaged checkpoint: " + reason);
  return found;
}

FoundCheckpoint open_checkpoint(const fs::path& path, std::vector<std::string>* warnings) {
  if (fs::exists(path / "state.json")) {
    verify_checkpoint(path);
    return {path, read_state(path)};
  }
  std::optional<FoundCheckpoint> found = find_checkpoint(path, warnings);
  if (!found)
    user_error(
        "[checkpoint] {}: expected a checkpoint's folder or a run folder with checkpoints, got {}; check the path",
        path.string(), fs::exists(path) ? "neither" : "nothing");
  return *found;
}

CheckpointState read_state(const fs::path& checkpoint) { return read_record(checkpoint).state; }

void verify_checkpoint(const fs::path& checkpoint) { verify(checkpoint, read_record(checkpoint)); }

}  // namespace tokamak
