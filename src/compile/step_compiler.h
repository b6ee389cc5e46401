// config -> model graph -> passes -> gradients -> update -> passes -> plan: the flow of the whole system in one file.
// A pure function of its inputs; nothing is allocated, so that it works for any size on any machine.
#pragma once

#include "compile/compiled_step.h"

#include <memory>

namespace tokamak {

/// Without a pipeline; compile/compiled_run.h is for both.
CompiledStep compile_step(const ResolvedRun& run, const Platform& platform, const PassObserver& observer = {});

struct BegunStep;

/// An update that was compiled with the same parameters, mesh and budget; else `make` gives it.
using KeptUpdate = std::function<const CompiledGraph&(const std::function<CompiledGraph()>& make)>;

/// Steps that are only looked at (PassContext::verifies), with values of so many kinds computed again
/// (PassContext::recompute_kinds), one after the other from one beginning: what any amount of it takes lies between
/// those of two numbers of kinds.
class StepOfKinds {
 public:
  /// Of a run without a pipeline. Its budget says nothing but the classifier's chunks (most_logit_bytes).
  StepOfKinds(const ResolvedRun& run, const Platform& platform);
  /// -1: by the budget (0: none), which also says what is gathered ahead. Of several micro-batches, `kept` may have the
  /// update.
  CompiledStep compile(int64_t kinds, double budget_gib, const KeptUpdate& kept = {}) const;
  /// One that was compiled so, where data ranks add gradients up beside its last micro-batch; with `may_choose` only if
  /// it takes less then. Of several micro-batches without slots, each with what a budget of none leaves.
  CompiledStep with_sums_in_last(CompiledStep step, bool may_choose) const;

 private:
  PassContext context_;
  std::shared_ptr<const BegunStep> begun_;
};

/// What steps are compiled with: what passes have to know of the run; and one program by the passes of `stage`, with
/// its plan.
PassContext context_of(const ResolvedRun& run, const Platform& platform);
CompiledGraph compile_program(Graph graph, const PassContext& context, PassStage stage, const PassObserver& observer);

/// The loss of a batch without dropout; with slots, of one slot on each data rank.
CompiledGraph compile_evaluation(const ResolvedRun& run, const Platform& platform);

/// What the model says of each token of (rows, length) (model/model.h): on a mesh every rank has a share of the rows,
/// and all get the whole results. Not for pipelines.
CompiledGraph compile_scores(const ResolvedRun& run, const Platform& platform, int64_t rows, int64_t length);

/// Inference graphs through the same passes (precision, fusion, padding).
CompiledGraph compile_inference(Graph graph, const ResolvedRun& run, const Platform& platform);

/// The same for parameters of one's own: those that are only read in a low type are of that type. Those that this graph
/// does not read are of the type that they have in `other`, which shares them. `mesh`: what it is divided over, of axis
/// `tensor` alone; none: one rank.
CompiledGraph compile_generation(Graph graph, const ResolvedRun& run, const Platform& platform,
                                 const Graph* other = nullptr, const Mesh& mesh = {});

}  // namespace tokamak
