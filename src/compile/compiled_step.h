// A training step as the compiler leaves it: named programs, and their runs in one optimizer step.
// Plain data: nothing is allocated. Tests: tests/compile/compiled_step_test.cpp.
#pragma once

#include "compile/resolved_run.h"
#include "passes/pass.h"
#include "plan/plan.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

/// One program's way through the compiler.
struct CompiledGraph {
  Graph before;  // as built, before the step's passes
  std::vector<PassReport> reports;
  Plan plan;

  const std::string& name() const { return plan.graph.name(); }
};

/// A state's tensor to or from the rank of another stage of a pipeline that has this one's other coordinates.
struct StageTransfer {
  bool sends = false;
  int64_t stage = 0;  // the other one
  std::string state;  // of this stage
};

/// One run of a program within an optimizer step; in a pipeline also a transfer between stages, in whose place both
/// stages may wait for each other.
struct ProgramRun {
  size_t program = 0;                          // index into CompiledStep::programs
  int64_t micro_batch = -1;                    // the one whose inputs it takes; -1: none
  std::optional<StageTransfer> transfer = {};  // instead of a program
};

struct CompiledStep {
  ResolvedRun resolved;
  Graph forward;  // the model as written
  std::vector<PassReport> forward_reports;
  /// "step", which is all of it; with accumulation "micro_batch", whose gradients are added to states grad.<name>, and
  /// "update", which clips them and takes the optimizer's step, or "last_micro_batch", which does so with the last
  /// micro-batch where data ranks add gradients up once a step; before them "weights" casts and gathers parameters for
  /// all micro-batches (passes/hoist_weights.h; in a pipeline for each chunk). With slots a micro-batch is one of them,
  /// and between micro-batches "sum<level>" adds up what is there (autodiff/slots.h). No two run at a time; what they
  /// share are parameters and states of one name, and the arena. A stage of a pipeline has "forward", "backward" (or
  /// "backward_input", "backward_weight"), perhaps "last_<backward...>" and "sync_gradients" (stage_update.h), and
  /// "update"; with slots also "sum<level>.<program>", and "total.<program>" after the last micro-batch.
  std::vector<CompiledGraph> programs;
  std::vector<ProgramRun> runs;  // of one optimizer step, in order
  /// States of which several micro-batches have their own at a time: so many buffers are stored, and what is done for
  /// micro-batch m reads and writes buffer m % buffers.
  std::map<std::string, int64_t> buffers;
  /// States in whose place micro-batches with odd numbers have others, by name: the terms of sums over slots.
  std::map<std::string, std::string> odd_states;

  /// With slots: that of a data rank's micro-batch. A rank has consecutive ones, or where the ranks' gradients are
  /// added in each run (mesh.zero >= 2), a run has.
  int64_t slot_of(int64_t data_rank, int64_t micro_batch) const;
  int64_t runs_of(size_t program) const;  // in a step
  double seconds() const;                 // predicted for an optimizer step
  double exposed_seconds() const;         // of those, what collectives make of them
  double flops() const;                   // of an optimizer step
  const CompiledGraph& largest() const;   // the program with the largest arena, which the others use as well
  int64_t scratch_bytes() const;          // of all programs, which do not share it
  int64_t buffer_bytes() const;           // of the states of `buffers`, all together
  int64_t intermediate_bytes() const;     // what compile.memory_budget_gib is for: arena and buffers
  int64_t total_bytes() const;            // parameters, states, inputs, arena and scratch memory
};

/// The runs of a step in a line, micro-batches that follow one another in one word, with what runs between them:
/// "micro_batch 0-7 (sum1 sum2), update".
std::string print_runs(const CompiledStep& step);

}  // namespace tokamak
