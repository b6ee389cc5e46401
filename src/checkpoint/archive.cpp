#include "checkpoint/archive.h"

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_listing.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/verify.h"

#include <algorithm>

namespace tokamak {

namespace fs = std::filesystem;

namespace {

constexpr size_t kCopiedBytes = size_t(4) << 20;  // bytes that are copied at a time

void write_file(const CheckpointFile& file, const fs::path& to) {
  AtomicFile copy(to);
  std::vector<std::byte> piece;
  for (std::span<const std::byte> left = file.bytes(); !left.empty(); left = left.subspan(piece.size())) {
    piece.resize(std::min(kCopiedBytes, left.size()));
    file.read(left.first(piece.size()), piece);
    copy.write(piece);
  }
  copy.commit();
}

void copy_text(const fs::path& from, const fs::path& to) { write_file_atomic(to, read_file(from, kLargeFile)); }

// What lies beside the checkpoints: lines of steps, the ledger, the configuration. A run goes on from a checkpoint
// though there are lines of later steps.
void copy_small_files(const fs::path& run, const fs::path& to) {
  make_folder(to);
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, none)) {
    std::string extension = entry.path().extension().string();
    if (entry.is_regular_file(none) && (extension == ".json" || extension == ".jsonl"))
      copy_text(entry.path(), to / entry.path().filename());
  }
  if (!fs::is_directory(run / kTokenizerFolder, none)) return;
  make_folder(to / kTokenizerFolder);
  for (const fs::directory_entry& entry : fs::directory_iterator(run / kTokenizerFolder))
    copy_text(entry.path(), to / kTokenizerFolder / entry.path().filename());
}

bool has_checkpoint(const fs::path& archive, const fs::path& checkpoint, const CheckpointState& state) {
  try {
    fs::path there = checkpoints_folder(archive) / checkpoint.filename();
    std::error_code none;
    if (!fs::exists(there / kStateFile, none)) return false;
    CheckpointRecord record = read_record(there);
    return record.state.step == state.step &&
           read_file(there / kStateFile, kLargeFile) == read_file(checkpoint / kStateFile, kLargeFile);
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

ArchivedCheckpoint::ArchivedCheckpoint(const fs::path& checkpoint) : found_(open_unverified(checkpoint)) {
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint))
    if (std::string name = entry.path().filename().string(); !found_.files.contains(name))
      texts_[name] = read_file(entry.path(), kLargeFile);
}

void ArchivedCheckpoint::copy_to(const fs::path& archive, const KeepRule& keep) const {
  if (has_checkpoint(archive, path(), found_.state)) return;
  fs::path checkpoints = checkpoints_folder(archive);
  make_folder(checkpoints);
  remove_leftovers(checkpoints);
  copy_small_files(run_folder_of(path()), archive);
  {
    StagedFolder staged(checkpoints / path().filename());
    for (const auto& [name, file] : found_.files) write_file(*file, staged.staged_path() / name);
    for (const auto& [name, text] : texts_) write_file_atomic(staged.staged_path() / name, text);
    verify_checkpoint(staged.staged_path());
    staged.commit();
  }
  point_latest(checkpoints / path().filename());
  remove_old_checkpoints(archive, keep, found_.state.good.step, found_.state.best);
}

std::string restore_archived(const fs::path& archive, const fs::path& out, std::vector<std::string>* warnings) {
  if (!list_checkpoints(checkpoints_folder(out)).empty()) return "";
  std::optional<FoundCheckpoint> found = find_checkpoint(archive, warnings);
  if (!found) return "";
  ArchivedCheckpoint(found->path).copy_to(out, KeepRule(0));
  return found->path.filename().string();
}

}  // namespace tokamak
