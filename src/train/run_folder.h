// The folder of a training run, which one process at a time writes to; others may read it. Tests:
// tests/e2e/lock_test.cpp.
#pragma once

#include <filesystem>
#include <optional>

#include "base/file_lock.h"

namespace tokamak {

class RunFolder {
 public:
  /// Makes the folder and locks it; a UserError names the process that trains there already.
  explicit RunFolder(std::filesystem::path path);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  /// Gives the lock back, and removes the folder if it was made here and nothing came into it.
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool made_;
  std::optional<FileLock> lock_;
};

}  // namespace tokamak
