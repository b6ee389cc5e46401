// config -> model graph -> passes -> gradients -> update -> passes -> plan: the flow of the whole system in one file.
// A pure function of its inputs; nothing is allocated, so that it works for any size on any machine.
#pragma once

#include "passes/pass.h"
#include "plan/plan.h"

#include <optional>

namespace tokamak {

/// One program's way through the compiler.
struct CompiledGraph {
  Graph before;  // as built, before the step's passes
  std::vector<PassReport> reports;
  Plan plan;
};

struct CompiledStep {
  RunConfig config;  // as asked for, `auto` resolved
  Graph forward;     // the model as written
  std::vector<PassReport> forward_reports;
  /// Without accumulation: the whole step. With it: one micro-batch, whose gradients are added to states grad.<name>.
  CompiledGraph step;
  std::optional<CompiledGraph> update;  // with accumulation: clipping and AdamW
  int64_t micro_batches = 1;

  double seconds() const;         // predicted for an optimizer step
  int64_t scratch_bytes() const;  // of both programs, which do not share it
  int64_t total_bytes() const;    // parameters, states, inputs, the larger arena and scratch memory
};

/// Tokens of one optimizer step / tokens of one micro-batch; UserError when they do not divide.
int64_t count_micro_batches(const RunConfig& config);

/// `auto` becomes what is fastest on the target; tf32 becomes fp32 on a target without units for it, and there are no
/// more streams than the target has.
RunConfig resolve(RunConfig config, const Target& target);

CompiledStep compile_step(const RunConfig& config, const Platform& platform, const PassObserver& observer = {});

/// Inference graphs through the same passes (precision, fusion, padding).
CompiledGraph compile_inference(Graph graph, const RunConfig& config, const Platform& platform);

}  // namespace tokamak
