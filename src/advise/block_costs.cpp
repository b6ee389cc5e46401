#include "advise/block_costs.h"

#include "compile/pipe_compiler.h"
#include "passes/bucket.h"
#include "passes/chunked_classifier.h"

#include <algorithm>

namespace tokamak {
namespace {

// A first stage, one in the middle and a last one.
constexpr int64_t kStages = 3;

// More than one, so that gradients are added; what each takes is the same in any number of them.
constexpr int64_t kMicroBatches = 2;

// What nobody asks for any more: a search keeps hundreds of steps.
CompiledStep only_plans(CompiledStep step) {
  step.forward = Graph();
  for (CompiledGraph& program : step.programs) program.before = Graph();
  return step;
}

}  // namespace

BlockKey block_key(const ParallelLayout& layout) {
  const MeshConfig& mesh = layout.mesh;
  bool is_pipeline = mesh.pipe > 1;
  return {mesh.tensor,
          mesh.context,
          mesh.data,
          mesh.zero,
          mesh.bucket_mib,
          layout.micro_batch,
          is_pipeline || layout.micro_batches > 1,
          is_pipeline};
}

CompiledStep BlockCosts::compile(const FewBlocks& few, const Platform& platform) {
  ParallelLayout layout = layout_;
  bool is_pipeline = layout.mesh.pipe > 1;
  layout.budget_gib = few.kinds > 0 ? few.budget_gib : 0;
  if (has_choice())
    layout.mesh.reduce_gradients = "update";
  else if (few.sums_with_last)
    layout.mesh.reduce_gradients = *few.sums_with_last ? "last" : "update";
  layout.micro_batches = is_pipeline || layout.micro_batches > 1 ? kMicroBatches : 1;
  if (is_pipeline) layout.mesh.pipe = kStages;
  layout.mesh.interleave = 1;
  layout.mesh.chunk_layers.clear();
  layout.mesh.schedule = few.splits_backward ? "zero_bubble" : "1f1b";
  RunConfig run = run_of(run_, layout);
  // Stages without blocks are the ends of a pipeline.
  std::vector<int64_t> first_block = {0, few.blocks, 2 * few.blocks, 3 * few.blocks};
  if (is_pipeline && few.blocks == 0) first_block = {0, 0, 1, 1};
  run.model.layers = is_pipeline ? first_block.back() : few.blocks;
  ResolvedRun resolved = resolve(run, platform.target);
  int64_t kinds = few.kinds > 0 ? few.kinds : -1;
  auto kept = [&](bool is_reduced, const std::function<StageUpdate()>& make) -> const StageUpdate& {
    return updates_.at({few.blocks, few.stage, is_reduced, layout.budget_gib}).get(make);
  };
  if (is_pipeline) {
    auto key = std::tuple(few.blocks, layout.budget_gib, few.splits_backward, layout.mesh.reduce_gradients);
    auto begin = [&] { return PipelineOfKinds(resolved, platform, first_block); };
    return entry(begun_pipelines_, key).get(begin).compile(int64_t(few.stage), kinds, kept);
  }
  std::pair key{few.blocks, most_logit_bytes(resolved.compile)};
  const StepOfKinds& begun = entry(begun_steps_, key).get([&] { return StepOfKinds(resolved, platform); });
  auto kept_program = [&](const std::function<CompiledGraph()>& make) -> const CompiledGraph& {
    return kept(false, [&] { return StageUpdate{.program = make()}; }).program;
  };
  if (!has_choice() || few.sums_with_last == false) return begun.compile(kinds, layout.budget_gib, kept_program);
  FewBlocks without = few;
  without.sums_with_last = false;
  return begun.with_sums_in_last(step(without, platform), !few.sums_with_last);
}

// As it is kept.
const CompiledStep& BlockCosts::step(const FewBlocks& few, const Platform& platform) {
  return entry(steps_, few).get([&] { return only_plans(compile(few, platform)); });
}

size_t BlockCosts::place_of(const Target& target) {
  std::lock_guard lock(mutex_);
  auto place = size_t(std::find(targets_.begin(), targets_.end(), target) - targets_.begin());
  if (place == targets_.size()) targets_.push_back(target);
  return place;
}

bool BlockCosts::has_choice() const {
  const MeshConfig& mesh = layout_.mesh;
  return mesh.reduce_gradients == "auto" && mesh.data > 1 && adds_gradients_once(mesh.zero) && mesh.pipe == 1 &&
         layout_.micro_batches > 1;
}

// Where nothing is computed again a budget changes only where ranks add gradients up: with one, not beside the last
// micro-batch.
FewBlocks BlockCosts::known(FewBlocks few) const {
  bool is_open = layout_.mesh.pipe > 1 && layout_.mesh.reduce_gradients == "auto";
  if (has_choice() && few.budget_gib > 0) few.sums_with_last = false;
  if (!has_choice() && !is_open) few.sums_with_last.reset();
  few.budget_gib = few.kinds > 0 ? nearby_budget(few.budget_gib) : 0;
  return few;
}

const StageCost& BlockCosts::at(FewBlocks few, const Platform& platform) {
  few = known(few);
  return entry(costs_, {place_of(platform.target), few}).get([&] { return stage_cost(step(few, platform), platform); });
}

}  // namespace tokamak
