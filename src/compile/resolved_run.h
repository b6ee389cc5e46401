// What will run, where RunConfig is what a user asked for: everything that is left open there is said here, and what
// follows from it is derived once. All that compiles, measures or trains takes this. Tests:
// tests/compile/resolved_run_test.cpp.
#pragma once

#include "autodiff/slots.h"
#include "config/config.h"
#include "config/train_ramp.h"
#include "passes/step_mesh.h"

namespace tokamak {

struct Target;

struct ResolvedRun {
  RunConfig asked;  // model, data, optimizer, length; of what is below only what was asked for
  Mesh mesh;
  Slots slots;                // without them one of one rank
  int64_t batch = 0;          // windows of model.context tokens of a micro-batch, of all data ranks together
  int64_t micro_batches = 1;  // of a step, in each of which every data rank has its share
  RampPhase phase;            // of train.ramp: of its steps are slots, micro_batches and the programs
  int64_t whole_slots = 1;    // of steps behind the ramp
  CompileConfig compile;      // a precision and streams that the target has

  int64_t stages() const { return mesh.size(kPipeAxis); }
  int64_t data_ranks() const { return mesh.size(kDataAxis); }
  bool has_slots() const { return slots.count > 1; }
  /// Windows that a program's graph is for: those of a micro-batch, or with slots of one, on one data rank.
  int64_t program_windows() const { return batch / slots.ranks.size; }
  /// Sequences of phase.sequence tokens that these are in training.
  int64_t program_sequences() const { return program_windows() * (asked.model.context / phase.sequence); }
  /// The rule of `asked`, which must outlive it, with the ranks that share its work.
  Optimizer optimizer() const;
  /// None without fp16.
  std::optional<LossScaling> loss_scaling() const;

  /// What was asked for with nothing left open, which resolves to the same run on any target: what is kept of a run.
  RunConfig settled() const;
};

/// Which ranks of a mesh share the work on whole matrices in an update: those over which what it reads and writes is
/// cut, by tensor always, by data and context with ZeRO. `least_parts`: WorkShares.
WorkShares work_shares(const Mesh& mesh, int64_t zero, int64_t least_parts = 0);

/// The only place where all of it is derived, for the steps of that phase of train.ramp in which so many are done.
/// Slots that are left open are as many as micro-batches and data ranks give, where those are a power of two; the
/// micro-batch follows from slots. UserError where total batch or slots do not fit.
ResolvedRun resolve(const RunConfig& asked, const Target& target, int64_t steps_done = kNoRampEnd - 1);

/// The part that follows from the target: `auto` becomes what is fastest there, tf32 becomes fp32 where there are no
/// units for it, and there are no more streams than the target has.
CompileConfig resolve(const CompileConfig& asked, const Target& target);

/// UserError when a group of optimizer.groups is of no parameter; resolve() asks for it.
void check_groups(const RunConfig& config);
/// What each of them is of, a line each.
std::vector<std::string> describe_groups(const RunConfig& config);

/// UserError when the mesh has more ranks: for what runs on one alone.
void require_one_rank(const ResolvedRun& run);

}  // namespace tokamak
