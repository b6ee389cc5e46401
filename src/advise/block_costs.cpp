#include "advise/block_costs.h"

#include "compile/pipe_compiler.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// A first stage, one in the middle and a last one.
constexpr int64_t kStages = 3;

// More than one, so that gradients are added; what each takes is the same in any number of them.
constexpr int64_t kMicroBatches = 2;

// Budgets that are so close to each other make no difference but for what is computed again.
double nearby(double budget_gib) { return std::exp2(std::round(2 * std::log2(budget_gib)) / 2); }

// What nobody asks for any more: a search keeps hundreds of steps.
std::vector<CompiledStep> only_plans(std::vector<CompiledStep> steps) {
  for (CompiledStep& step : steps) {
    step.forward = Graph();
    for (CompiledGraph& program : step.programs) program.before = Graph();
  }
  return steps;
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

std::vector<CompiledStep> BlockCosts::compile(const FewBlocks& few, const Platform& platform) {
  ParallelLayout layout = layout_;
  bool is_pipeline = layout.mesh.pipe > 1;
  layout.budget_gib = few.kinds > 0 ? few.budget_gib : 0;
  layout.micro_batches = is_pipeline || layout.micro_batches > 1 ? kMicroBatches : 1;
  if (is_pipeline) layout.mesh.pipe = kStages;
  layout.mesh.interleave = 1;
  layout.mesh.schedule = few.splits_backward ? "zero_bubble" : "1f1b";
  RunConfig run = run_of(run_, layout);
  run.model.layers = few.blocks * layout.mesh.pipe;
  ResolvedRun resolved = resolve(run, platform.target);
  int64_t kinds = few.kinds > 0 ? few.kinds : -1;
  if (!is_pipeline) {
    auto begun = begun_.find({few.blocks, layout.budget_gib});
    if (begun == begun_.end()) begun = begun_.try_emplace({few.blocks, layout.budget_gib}, resolved, platform).first;
    std::vector<CompiledStep> steps;
    steps.push_back(begun->second.compile(kinds));
    return steps;
  }
  return compile_pipeline_of_kinds(resolved, platform, {0, few.blocks, 2 * few.blocks, 3 * few.blocks}, kinds,
                                   layout.budget_gib)
      .stages;
}

const std::vector<StageCost>& BlockCosts::at(FewBlocks few, const Platform& platform) {
  few.budget_gib = few.kinds > 0 ? nearby(few.budget_gib) : 0;
  std::lock_guard lock(mutex_);
  auto target = size_t(std::find(targets_.begin(), targets_.end(), platform.target) - targets_.begin());
  if (target == targets_.size()) targets_.push_back(platform.target);
  auto known = costs_.find({target, few});
  if (known != costs_.end()) return known->second;
  auto steps = steps_.find(few);
  if (steps == steps_.end()) steps = steps_.emplace(few, only_plans(compile(few, platform))).first;
  std::vector<StageCost> costs;
  for (const CompiledStep& step : steps->second) costs.push_back(stage_cost(step, platform));
  return costs_.emplace(std::pair(target, few), std::move(costs)).first->second;
}

}  // namespace tokamak
