// A second folder of a run's checkpoints, on a disk that is slower and lasts longer than that of the run
// (train.archive). It has the form of a run's folder: what is copied there is compared with its checksums before it
// gets its name. Tests: tests/checkpoint/archive_test.cpp, tests/e2e/archive_test.cpp.
#pragma once

#include "checkpoint/checkpoint.h"

namespace tokamak {

/// A checkpoint of a run that is about to be copied; its files are open, so that it can be copied though the run
/// removes it meanwhile.
class ArchivedCheckpoint {
 public:
  /// `checkpoint`: in the folder of the run, with it the small files beside it (config.json, metrics.jsonl, ...).
  explicit ArchivedCheckpoint(const std::filesystem::path& checkpoint);

  const std::filesystem::path& path() const { return found_.path; }

  /// Copies it to the archive, on any thread, and removes there what `keep` does not say. Does nothing where it is
  /// there. UserErrors: no space, no permission, a copy that is not what it should be; the archive has what it had
  /// then.
  void copy_to(const std::filesystem::path& archive, const KeepRule& keep) const;

 private:
  FoundCheckpoint found_;
  std::map<std::string, std::string> texts_;  // state.json and files for other programs, by name
};

/// Where `out` has no checkpoint: the newest good one of the archive with the run's small files, copied back. Its name;
/// empty where there is nothing to do. UserError as of find_checkpoint. Damaged ones are skipped with a line in
/// `warnings`.
std::string restore_archived(const std::filesystem::path& archive, const std::filesystem::path& out,
                             std::vector<std::string>* warnings);

}  // namespace tokamak
