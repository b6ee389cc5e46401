// Copies checkpoints to train.archive on a thread of its own, while the run goes on. Tests: tests/e2e/archive_test.cpp.
#pragma once

#include "checkpoint/archive.h"
#include "exec/task_queue.h"

#include <mutex>
#include <optional>

namespace tokamak {

class Archiver {
 public:
  Archiver(std::filesystem::path archive, const KeepRule& keep) : archive_(std::move(archive)), keep_(keep) {}

  /// This checkpoint is next, in place of one that is still waited with: where the archive is slower than saves are,
  /// it has fewer of them.
  void add(const std::filesystem::path& checkpoint);
  /// Why the last one could not be copied, once; empty: nothing to tell.
  std::string take_warning();
  /// Returns when the newest one is copied, or could not be.
  void wait() { tasks_.wait(); }

 private:
  void copy_all();
  std::optional<ArchivedCheckpoint> take_next();
  void warn(const std::filesystem::path& checkpoint, const std::string& why);

  std::filesystem::path archive_;
  KeepRule keep_;
  std::mutex mutex_;  // of what follows
  std::optional<ArchivedCheckpoint> next_;
  bool copies_ = false;
  std::string warning_;
  TaskQueue tasks_;  // last: its thread uses the others
};

}  // namespace tokamak
