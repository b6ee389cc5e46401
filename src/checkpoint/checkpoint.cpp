#include "checkpoint/checkpoint.h"

#include "base/error.h"
#include "base/file.h"
#include "base/path_links.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_listing.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/shared_save.h"
#include "checkpoint/verify.h"

#include <algorithm>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

void keep_last(const fs::path& checkpoints, const KeepRule& rule, int64_t good, int64_t best) {
  for (const fs::path& path : superfluous(read_checkpoints(checkpoints), rule, {good, best})) remove_checkpoint(path);
}

// Whose files are opened and compared; kUnverified: all, and none is compared.
enum class Part : uint8_t { kAll, kModel, kState, kUnverified };

// All are opened before any is read to its end, for which a training run may not wait.
FoundCheckpoint open_files(const fs::path& folder, const CheckpointRecord& record, Part part) {
  FoundCheckpoint opened{folder, record.state, {}};
  for (const FileRecord& file : record.files)
    if (part == Part::kAll || part == Part::kUnverified || (part == Part::kModel && file.name == kModelFile))
      opened.files[file.name] = std::make_shared<const CheckpointFile>(folder / file.name);
  if (part == Part::kUnverified) return opened;
  for (const FileRecord& file : record.files)
    if (auto at = opened.files.find(file.name); at != opened.files.end()) verify_file(at->second, file);
  return opened;
}

struct Search {
  std::optional<FoundCheckpoint> found;
  std::vector<std::string> reasons;  // why those that were written later are not
};

Search search(const CheckpointListing& listing, Part part) {
  Search search{{}, listing.reasons};
  for (const ListedCheckpoint& candidate : listing.readable) {
    try {
      search.found = open_files(candidate.path, candidate.record, part);
      break;
    } catch (const UserError& error) {
      search.reasons.push_back(error.what());
    }
  }
  return search;
}

bool is_same(const CheckpointListing& a, const CheckpointListing& b) {
  auto same = [](const ListedCheckpoint& x, const ListedCheckpoint& y) {
    return x.path == y.path && x.record.serial == y.record.serial;
  };
  return a.damaged == b.damaged &&
         std::equal(a.readable.begin(), a.readable.end(), b.readable.begin(), b.readable.end(), same);
}

// What was there a moment ago may be gone, and something newer there: that is no damage.
constexpr int kMostTries = 100;

std::optional<FoundCheckpoint> find_newest(const fs::path& out, Part part, std::vector<std::string>* warnings) {
  fs::path checkpoints = checkpoints_folder(out);
  Search result;
  for (int i = 0; i < kMostTries; ++i) {
    CheckpointListing listing = read_checkpoints(checkpoints);
    result = search(listing, part);
    if (result.reasons.empty() || is_same(listing, read_checkpoints(checkpoints))) break;
  }
  settle_search(out, result.found.has_value(), result.reasons, warnings);
  return result.found;
}

// Nothing when it is none. A link such as `latest` is followed once.
std::optional<FoundCheckpoint> open_named(const fs::path& path, Part part) {
  for (int i = 1;; ++i) {
    std::error_code error;
    fs::path folder = fs::canonical(path, error);
    if (error || (!fs::exists(folder / kStateFile, error) && !fs::is_symlink(path))) return std::nullopt;
    try {
      FoundCheckpoint opened = open_files(folder, read_record(folder), part);
      opened.path = fs::is_symlink(path) ? path.parent_path() / folder.filename() : path;
      return opened;
    } catch (const UserError&) {
      if (i == kMostTries || fs::canonical(path, error) == folder) throw;
    }
  }
}

FoundCheckpoint open_part(const fs::path& path, Part part, std::vector<std::string>* warnings) {
  refuse_file_of_model(path);
  if (std::optional<FoundCheckpoint> named = open_named(path, part)) return *named;
  if (std::optional<FoundCheckpoint> other = open_hugging_face(path)) return *other;
  std::optional<FoundCheckpoint> found = find_newest(run_with_checkpoints(path).value_or(path), part, warnings);
  if (!found)
    user_error(
        "[checkpoint] {}: expected a checkpoint's folder, a run folder with checkpoints or a model in Hugging Face's "
        "form, got {}; check "
        "the path",
        path.string(), is_named(path) ? "none of them" : "nothing");
  return *found;
}

// Where links were followed as a run was copied, there is a folder in the place of `latest`.
void remove_copied_latest(const fs::path& checkpoint) {
  fs::path latest = checkpoint.parent_path() / "latest", state = latest / kStateFile;
  if (!fs::is_directory(fs::symlink_status(latest))) return;
  if (!fs::exists(state) || read_file(state, kLargeFile) != read_file(checkpoint / kStateFile, kLargeFile))
    user_error("[checkpoint] expected a link at {}, got a folder that is no copy of {}; move it away", latest.string(),
               checkpoint.filename().string());
  fs::remove_all(latest);
}

}  // namespace

fs::path save_checkpoint(const fs::path& out, const CheckpointState& state, const TensorStore& store,
                         const KeepRule& keep) {
  fs::path path = checkpoints_folder(out) / checkpoint_name(state.step);
  if (save_in_slices(out, state, store, keep)) return path;
  if (!store.leads()) {
    join_saving(store);
    return path;
  }
  try {
    StagedCheckpoint staged(out, state);
    staged.finish(state, gather_files(staged.folder(), store), keep);
  } catch (const UserError& error) {
    refuse_save(state.step, error.what());
  }
  return path;
}

void repair_checkpoints(const fs::path& out, const std::optional<FoundCheckpoint>& found, const KeepRule& keep) {
  fs::path checkpoints = checkpoints_folder(out);
  remove_leftovers(checkpoints);
  if (!found) return;
  remove_copied_latest(found->path);
  point_latest(found->path);
  if (read_checkpoints(checkpoints).readable.front().path == found->path)
    keep_last(checkpoints, keep, found->state.good.step, found->state.best);
}

void remove_old_checkpoints(const fs::path& out, const KeepRule& keep, int64_t good, int64_t best) {
  keep_last(checkpoints_folder(out), keep, good, best);
}

std::optional<FoundCheckpoint> peek_checkpoint(const fs::path& out) {
  CheckpointListing listing = read_checkpoints(checkpoints_folder(out));
  if (listing.readable.empty()) return std::nullopt;
  const ListedCheckpoint& newest = listing.readable.front();
  return FoundCheckpoint{newest.path, newest.record.state, {}};
}

std::optional<FoundCheckpoint> find_checkpoint(const fs::path& out, std::vector<std::string>* warnings) {
  return find_newest(out, Part::kAll, warnings);
}

FoundCheckpoint open_checkpoint(const fs::path& path, std::vector<std::string>* warnings) {
  return open_part(path, Part::kModel, warnings);
}

FoundCheckpoint open_unverified(const fs::path& path) { return open_part(path, Part::kUnverified, nullptr); }

FoundCheckpoint peek_model(const fs::path& path) { return open_part(path, Part::kState, nullptr); }

CheckpointState read_state(const fs::path& checkpoint) { return read_record(checkpoint).state; }

void verify_checkpoint(const fs::path& checkpoint) { open_files(checkpoint, read_record(checkpoint), Part::kAll); }

}  // namespace tokamak
