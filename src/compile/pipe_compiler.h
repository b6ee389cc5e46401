// A training step as a pipeline: the model in chunks at the borders of its blocks, each with its programs, and for each
// stage a compiled step of its own. A pure function of its inputs, as compile_step (compile/step_compiler.h) is.
// Tests: tests/compile/pipe_compiler_test.cpp.
#pragma once

#include "compile/compiled_step.h"
#include "compile/stage_update.h"
#include "plan/pipe_timeline.h"

#include <memory>

namespace tokamak {

struct CompiledPipeline {
  ResolvedRun resolved;
  Graph forward;  // the model as written
  std::vector<PassReport> forward_reports;
  PipeSchedule schedule;
  std::vector<int64_t> first_block;  // of each chunk, and behind the last one the number of blocks
  std::vector<CompiledStep> stages;  // a rank runs that of its coordinate on axis pipe
  PipeTimeline timeline;             // predicted, without the updates and sums over slots

  int64_t blocks(int64_t chunk) const { return first_block[size_t(chunk) + 1] - first_block[size_t(chunk)]; }
  double seconds() const;  // predicted for an optimizer step
};

/// For the mesh's stages, of one rank each or, with other axes, of several.
CompiledPipeline compile_pipeline(const ResolvedRun& run, const Platform& platform, const PassObserver& observer = {});

struct BegunPipeline;

/// Stages of a pipeline with as many blocks in each chunk as is said, of which values of so many kinds are computed
/// again, one after the other from one beginning, as StepOfKinds has them (compile/step_compiler.h).
class PipelineOfKinds {
 public:
  /// Each stage has one chunk.
  PipelineOfKinds(const ResolvedRun& run, const Platform& platform, std::vector<int64_t> first_block);
  /// An update that was compiled with the same parameters, mesh and budget, of a stage whose last backward pass adds
  /// gradients up over data ranks or does not; else `make` gives it.
  using KeptUpdates = std::function<const StageUpdate&(bool is_reduced, const std::function<StageUpdate()>& make)>;
  CompiledStep compile(int64_t stage, int64_t kinds, const KeptUpdates& kept) const;

 private:
  std::shared_ptr<const BegunPipeline> begun_;
};

/// The losses of as many batches as a step has micro-batches, without dropout, for each stage of a pipeline whose
/// chunks begin with these blocks. They go through it one behind the other as in a step; then the last program tells
/// each one's, in order, as result loss. Of fewer batches the first so many runs of each program are wanted.
std::vector<CompiledStep> compile_pipeline_loss(const ResolvedRun& run, const Platform& platform,
                                                const std::vector<int64_t>& first_block);

}  // namespace tokamak
