// A folder in memory for the states of a run, which outlives the processes that train (run/memory_states.h). Tests:
// tests/e2e/memory_states_test.cpp.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/file_lock.h"

namespace tokamak {

class MemoryFolder {
 public:
  /// Makes one below `parent`, for this user alone, and removes those of processes that are gone. UserError where that
  /// is no folder to write to.
  explicit MemoryFolder(const std::filesystem::path& parent);
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  /// Removes it with all that is in it.
  ~MemoryFolder();

  /// What tells a process of it: a variable of its environment, "NAME=value".
  std::string variable() const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<FileLock> lock_;  // held by the process that lives
};

/// The folder that this process was told of; empty: none.
std::filesystem::path given_memory_folder();

/// Removes that, where the process that made it is gone. For any process of the run, at its end.
void remove_left_memory_folder();

}  // namespace tokamak
