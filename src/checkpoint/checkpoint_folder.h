// The folders that checkpoints lie in: how one appears at once, is found and goes away. A part of checkpoint.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// <out>/checkpoints
std::filesystem::path checkpoints_folder(const std::filesystem::path& out);

/// The run whose folder, or whose folder of checkpoints, this is; nothing where there is none of the latter.
std::optional<std::filesystem::path> run_with_checkpoints(const std::filesystem::path& named);

/// step_00000010
std::string checkpoint_name(int64_t step);

bool is_checkpoint_name(std::string_view name);

/// The step that such a name tells.
int64_t step_of_checkpoint(const std::filesystem::path& checkpoint);

/// Every finished checkpoint's folder inside `checkpoints`, sorted by name; empty when there is none.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& checkpoints);

/// Syncs a folder and gives it its name, in place of one that has it already, which has the name `staged` then; syncs
/// the folder around it.
void give_name(const std::filesystem::path& staged, const std::filesystem::path& path);

/// A folder under a temporary name; removed with everything in it unless it is committed.
class StagedFolder {
 public:
  explicit StagedFolder(std::filesystem::path path);
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  ~StagedFolder();

  const std::filesystem::path& staged_path() const { return staged_; }

  /// Gives the folder its name, in place of one that has it already, and syncs the folder around it.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path staged_;
};

/// Makes the link `latest` beside the checkpoint point to it, in one step. Where the file system has no links, none is
/// made: nothing of ours needs it.
void point_latest(const std::filesystem::path& checkpoint);

/// The same of the link `best` and the checkpoint of this step; 0: there is none, and no link either.
void point_best(const std::filesystem::path& checkpoints, int64_t step);

/// Removes a checkpoint so that no half of it is ever found. What cannot be removed stays.
void remove_checkpoint(const std::filesystem::path& checkpoint);

/// Folders that are being written, or were left behind by killed processes.
std::vector<std::filesystem::path> list_unfinished(const std::filesystem::path& checkpoints);

/// Removes what killed processes left behind.
void remove_leftovers(const std::filesystem::path& checkpoints);

}  // namespace tokamak
