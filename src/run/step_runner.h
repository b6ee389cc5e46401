// A compiled step on a backend: its programs, and the memory that they take turns with.
#pragma once

#include "run/stage_transfers.h"

#include <functional>
#include <limits>

namespace tokamak {

class StepRunner;

struct RunnerOptions {
  const MeshRanks* ranks = nullptr;    // null: one rank
  const StepRunner* lender = nullptr;  // of its arena, where that is large enough; does not run at the same time
  bool record = false;
};

class StepRunner {
 public:
  /// What the step's states need is made in `store`. Backend, store and ranks must outlive it.
  StepRunner(const CompiledStep& step, Backend& backend, TensorStore& store, const RunnerOptions& options = {});

  using Before = std::function<void(Program& program, int64_t micro_batch)>;  // micro_batch < 0: of none
  using After = std::function<void(const Program& program)>;
  /// One more run of the first micro-batch's program, right before it: of a slot whose gradients are wanted twice. What
  /// it leaves in states is overwritten.
  struct Again {
    int64_t micro_batch;  // in whose states it leaves them
    Before set_inputs;
    After read;
  };
  /// All runs of the step, or those of its first micro-batches alone where it is asked for fewer than it has.
  /// `set_inputs` comes before each run of a program, `read` after it.
  void run(const Before& set_inputs, const After& read, int64_t micro_batches = std::numeric_limits<int64_t>::max(),
           const Again* again = nullptr);

  /// As Program::observe: of all that runs, transfers between stages as well.
  void observe(WorkObserver* observer);

  /// As Program::change_after, of all programs.
  void change_after(HostCopies& copies);

  /// What its programs take turns with, for others that do not run at the same time.
  const std::shared_ptr<Memory>& arena() const { return arena_; }
  int64_t arena_bytes() const { return arena_bytes_; }

  /// Those of the step.
  const std::vector<std::unique_ptr<Program>>& programs() const { return programs_; }

 private:
  void run_again(Program& program, const Again& again);

  std::vector<ProgramRun> runs_;
  int64_t arena_bytes_;
  std::shared_ptr<Memory> arena_;
  std::vector<std::unique_ptr<Program>> programs_;
  StageTransfers transfers_;
};

}  // namespace tokamak
