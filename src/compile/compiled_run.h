// What all ranks of a run execute: one step or, with a pipeline, one for each stage, of which a rank runs that of its
// coordinate on axis pipe. Pure functions of their inputs. Tests: tests/compile/compiled_run_test.cpp.
#pragma once

#include "compile/compiled_step.h"
#include "graph/stored_tensor.h"

namespace tokamak {

struct CompiledRun {
  std::vector<CompiledStep> stages;
  std::vector<int64_t> first_block;  // of each chunk of a pipeline, and behind the last one the number of blocks
  double seconds = 0;                // predicted for an optimizer step

  const ResolvedRun& resolved() const { return stages[0].resolved; }
  double exposed_seconds() const;       // by how much that is longer than the work of the first stage's ranks
  const CompiledStep& fullest() const;  // the stage that needs most memory
};

CompiledRun compile_run(const ResolvedRun& run, const Platform& platform);

/// How many batches compile_loss takes at once, at most; of a pipeline several.
int64_t batches_at_once(const ResolvedRun& run);

/// The losses of batches as large as micro-batches, without dropout, by stage: result loss of the last program, for
/// each (compile/pipe_compiler.h). first_block as of the run.
std::vector<CompiledStep> compile_loss(const ResolvedRun& run, const Platform& platform,
                                       const std::vector<int64_t>& first_block = {});

/// The parameters and states that outlive a step, of all stages: parameters in the model's order.
std::vector<StoredTensor> kept_tensors(const CompiledRun& run);

}  // namespace tokamak
