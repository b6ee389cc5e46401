// A checkpoint's folder while it is written, by the rank that leads. A part of checkpoint.h.
#pragma once

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_state.h"

namespace tokamak {

class StagedCheckpoint {
 public:
  /// Makes the folder under a temporary name, and removes what killed processes left behind. Removed again with
  /// everything in it unless it is finished.
  StagedCheckpoint(const std::filesystem::path& out, const CheckpointState& state);

  const std::filesystem::path& folder() const { return folder_.staged_path(); }

  /// Its tensors are written: writes the rest, syncs, gives it its name and the link `latest`, and removes all but
  /// those that `keep` says.
  void finish(const CheckpointState& state, std::vector<FileRecord> files, const KeepRule& keep);
  /// The same with the state.json of another machine's, and removes none.
  void finish_like(const std::string& record);

 private:
  std::filesystem::path out_, path_;
  int64_t serial_;
  StagedFolder folder_;
};

/// "[checkpoint] step 7 could not be saved; earlier checkpoints are as they were." and why.
[[noreturn]] void refuse_save(int64_t step, std::string_view why);

}  // namespace tokamak
