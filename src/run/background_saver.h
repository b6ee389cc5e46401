// Saves that are written while training goes on: the state is copied to host memory, on a GPU beside the next step, and
// written from there by a thread of its own. Tests: tests/mesh/background_save_test.cpp,
// tests/e2e/background_save_test.cpp.
#pragma once

#include "checkpoint/rank_machines.h"
#include "checkpoint/shared_save.h"
#include "checkpoint/state_copy.h"
#include "exec/task_queue.h"
#include "run/session.h"

#include <atomic>
#include <optional>

namespace tokamak {

/// All ranks of a run have one, and call begin() at the same time. Their threads speak through a channel of their own.
class BackgroundSaver {
 public:
  /// Of the session whose state is copied; it and the backend must outlive this. Before its first step.
  BackgroundSaver(Session& session, Backend& backend);
  /// Waits for what is being written.
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  /// Of the host's memory, for as long as this lives.
  int64_t copy_bytes() const { return copy_.bytes(); }
  /// Takes that memory while steps run; on a GPU it takes as long as several saves. Once, before the first save.
  void reserve();
  /// In place of that: memory that another one has released, whose state had the same size; of another size it takes
  /// none. And to release it, when nothing is being written.
  bool use_memory(CopyMemory memory);
  CopyMemory release_memory();
  /// Waits for that. Empty: it is there; else why it is not, and nothing can be saved.
  std::string lacks_memory();

  /// Asks for a copy of the state after the steps that were submitted so far; the next may be submitted at once.
  /// Nothing is being written.
  void copy();
  /// Begins to write what was copied, on all ranks. False: they share no folders, and nothing is saved.
  bool write(const std::filesystem::path& out, const CheckpointState& state, const KeepRule& keep);
  /// The same into the memory of several machines (checkpoint/kept_save.h).
  bool write(const std::filesystem::path& folder, const CheckpointState& state, const RankMachines& machines,
             Communicator& links);

  /// Whether a state was copied whose save has no end yet that was taken.
  bool is_open() const { return open_; }
  /// Whether that has ended, well or not. For any thread.
  bool has_ended() const { return ended_; }
  /// Why it failed; empty: it did not, or has not yet. For any thread.
  std::string failure() const;
  /// Waits for the end and takes it: the seconds since begin() when the checkpoint was whole. Throws what failed.
  double take();
  /// Gives up what this rank has not written yet; other ranks, if there are any, are lost. Whether the checkpoint is
  /// whole all the same.
  bool abandon();

 private:
  using Begin = std::function<CompleteSave(const Exchange& exchange)>;
  bool write(const Begin& begin);
  void complete(const CompleteSave& complete);

  Backend& backend_;
  StateCopy copy_;
  std::string lack_ = "it was not asked for";  // why there is no memory
  const TensorStore& store_;
  std::unique_ptr<TextChannel> channel_;  // null: one rank
  bool open_ = false;
  std::atomic<bool> ended_ = false, abandoned_ = false;
  std::chrono::steady_clock::time_point begin_;
  mutable std::mutex mutex_;  // of what follows
  double seconds_ = 0;
  std::exception_ptr error_;
  std::string failure_;
  TaskQueue tasks_;  // last: its thread uses the others
};

}  // namespace tokamak
