#include "checkpoint/staged_checkpoint.h"

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint_listing.h"

namespace tokamak {

namespace fs = std::filesystem;

namespace {

// The folder around it, in order; what the next save has as its number.
int64_t prepare(const fs::path& out) {
  fs::path checkpoints = checkpoints_folder(out);
  make_folder(checkpoints);
  sync_folder(out);
  remove_leftovers(checkpoints);
  CheckpointListing earlier = read_checkpoints(checkpoints);
  return earlier.readable.empty() ? 1 : earlier.readable.front().record.serial + 1;
}

}  // namespace

StagedCheckpoint::StagedCheckpoint(const fs::path& out, const CheckpointState& state)
    : out_(out), path_(checkpoints_folder(out) / checkpoint_name(state.step)), serial_(prepare(out)), folder_(path_) {}

void StagedCheckpoint::finish(const CheckpointState& state, std::vector<FileRecord> files, const KeepRule& keep) {
  for (const auto& [name, text] : state.for_others) write_file_atomic(folder() / name, text);
  write_record(folder(), {state, serial_, std::move(files)});
  folder_.commit();
  point_latest(path_);
  remove_old_checkpoints(out_, keep, state.good.step, state.best);
}

void StagedCheckpoint::finish_like(const std::string& record) {
  write_file_atomic(folder() / kStateFile, record);
  folder_.commit();
  point_latest(path_);
}

void refuse_save(int64_t step, std::string_view why) {
  user_error("[checkpoint] step {} could not be saved; earlier checkpoints are as they were. {}", step, why);
}

}  // namespace tokamak
