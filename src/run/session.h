// A compiled model on a backend: parameters, optimizer state and programs, stepped by the trainer and by the ladder.
#pragma once

#include "compile/compiled_run.h"
#include "data/loader.h"
#include "exec/parameter_digest.h"
#include "run/initial_values.h"
#include "run/reference_nodes.h"
#include "run/slot_check.h"
#include "run/step_runner.h"

namespace tokamak {

struct StepResult {
  double loss = 0;                   // mean over the step's targets that count
  double grad_norm = 0;              // before clipping
  bool applied = true;               // false: grad_norm is not finite, and the step changed nothing
  std::optional<double> loss_scale;  // with fp16: what the loss was multiplied by,
  std::optional<int64_t> skipped;    // and how many steps were skipped so far
  std::optional<uint64_t> digest;    // of loss, grad_norm and the parameters after the step (train.digest_every)
};

/// A step whose work is under way.
class PendingStep {
 public:
  bool ready() const { return grad_norm_->ready() && (!digest_ || digest_->ready()); }
  /// Waits for the step. CommunicationError where the run has failed meanwhile: of a rank that has lost others the
  /// results may be anything.
  StepResult wait();

 private:
  friend class Session;
  void read(const Program& program);

  std::vector<std::unique_ptr<Readback>> losses_;   // of the programs that have one, in the order of their runs
  std::unique_ptr<Readback> loss_scale_, skipped_;  // null without loss scaling
  std::unique_ptr<Readback> grad_norm_;             // the last that is read of the step's results
  std::unique_ptr<Readback> digest_;                // of the parameters behind it; null: none
  const MeshRanks* ranks_ = nullptr;                // null: one rank
};

/// The losses of batches as large as micro-batches, without dropout and without touching anything.
class LossProgram {
 public:
  /// `step`: what compile_loss gives for this rank's stage; parameters are those of `store`.
  LossProgram(const CompiledStep& step, Backend& backend, TensorStore& store, const RunnerOptions& options = {});

  /// Mean losses of the targets that count, in the order of the batches, of which there are batches_at_once (see
  /// compile/compiled_run.h) or fewer: of a batch, or with slots on several data ranks, of which each runs an equal
  /// part of it, of each of these parts. All ranks get them.
  std::vector<double> run(std::span<const Batch> batches);

 private:
  std::vector<double> run_part(std::span<const Batch> batches, int64_t part, int64_t parts);

  StepRunner runner_;
  bool weighted_;                    // the graph takes the weight of the loss from us
  Communicator* sharing_ = nullptr;  // of ranks that have a part each; null: all run the same batch
};

/// The run compiled for `ranks`, those of its mesh; null: one rank. UserErrors: `available_bytes` (0: unknown) are
/// fewer than planned; one rank where the mesh has several.
CompiledRun compile_to_fit(const ResolvedRun& run, const Platform& platform, int64_t available_bytes,
                           const MeshRanks* ranks = nullptr);

class Session {
 public:
  /// Allocates. Throws UserError with compile.strict when there are reference_nodes(). `ranks`: those that the run was
  /// compiled for, of which this is one; they must outlive the session, and all of them make the same calls.
  Session(CompiledRun compiled_run, const Platform& platform, Backend& backend, const MeshRanks* ranks = nullptr);
  /// Compiles to fit and allocates.
  Session(const ResolvedRun& run, const Platform& platform, Backend& backend, int64_t available_bytes = 0,
          const MeshRanks* ranks = nullptr);

  const CompiledRun& run() const { return run_; }
  /// This rank's stage of it.
  const CompiledStep& compiled() const { return run_.stages[size_t(stage_)]; }
  const ResolvedRun& resolved() const { return run_.resolved(); }
  TensorStore& store() { return *store_; }
  const TensorStore& store() const { return *store_; }
  const std::vector<ParameterInfo>& parameters() const { return parameters_; }

  /// The model's initialisation from train.seed; optimizer states zero, the loss scale compile.loss_scale.
  void initialise();
  /// The same with values that someone draws already.
  void initialise(InitialValues& values);
  /// The same values; each rank draws those that it has, and no whole parameter that is divided.
  void initialise_shares();
  /// The states alone, for parameters that come from elsewhere.
  void initialise_states();

  /// One optimizer step over micro_batches() batches, of which a rank takes its share; `step` counts from 0 and seeds
  /// dropout.
  StepResult run_step(std::span<const Batch> batches, int64_t step, double lr);
  /// The same without waiting, on a backend that has a queue.
  PendingStep submit_step(std::span<const Batch> batches, int64_t step, double lr);
  int64_t micro_batches() const { return resolved().micro_batches; }
  /// After a step that failed: whether it had begun to write parameters or states that are kept. Else they are those
  /// after the step before. On a backend with a queue: whether it was asked to.
  bool is_torn() const { return changes() != settled_changes_; }
  int64_t tokens_per_step() const { return resolved().phase.step_tokens; }

  /// After a step whose number train.verify_every divides, on all ranks: what of its slots, parameters or optimizer
  /// states has not the bits that it should have; empty: all have.
  std::string compare_slots(int64_t step);

  /// Tells it of all that training steps ask of the backend from now on; null: nobody.
  void observe(WorkObserver* observer);
  /// The same while nobody else observes.
  void observe_else(WorkObserver* observer);

  /// For copies of parameters and states: those of a step's end are right though the next step has been submitted,
  /// which changes nothing before they are done. To be asked for before the first step.
  HostCopies& copies();

  /// See LossProgram::run.
  std::vector<double> evaluate(std::span<const Batch> batches);

  const StepRunner& runner() const { return *runner_; }
  /// Those of compiled().programs.
  Program& program(size_t index) { return *runner_->programs()[index]; }
  const Program& program(size_t index) const { return *runner_->programs()[index]; }
  /// What of them no kernel of the backend computes.
  std::vector<ReferenceNode> reference_nodes() const;
  /// Whether a run of one of them is recorded, if the backend can.
  bool records() const;
  /// Scratch memory that their kernels took; compiled().scratch_bytes() is what was expected of them.
  int64_t workspace_bytes() const;

 private:
  void make_eval();
  int64_t changes() const;

  Platform platform_;
  Backend& backend_;
  const MeshRanks* ranks_;
  CompiledRun run_;
  int64_t stage_;
  int64_t settled_changes_ = 0;  // of the programs, after the last step that was done
  std::vector<ParameterInfo> parameters_;
  std::unique_ptr<TensorStore> store_;  // where it stays when the session is moved
  std::unique_ptr<HostCopies> copies_;  // null: nobody has asked for them
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<ParameterDigest> digest_;  // null: none is taken
  std::unique_ptr<SlotCheck> slot_check_;    // null: no step is checked
  WorkObserver *observer_ = nullptr, *else_observer_ = nullptr;
  std::unique_ptr<LossProgram> eval_;  // made when it is first needed
};

}  // namespace tokamak
