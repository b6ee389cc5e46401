// What blocks of a model take on a rank, from compiled steps of few of them. Layouts that differ in the number of
// blocks, stages, micro-batches or the order of a pipeline are made of the same ones, which are compiled once; other
// rates only price them anew. Tests: tests/advise/block_costs_test.cpp.
#pragma once

#include "advise/layout.h"
#include "advise/stage_cost.h"
#include "compile/step_compiler.h"
#include "graph/platform.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace tokamak {

/// Layouts with equal keys are made of the same blocks.
using BlockKey = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool>;
BlockKey block_key(const ParallelLayout& layout);

/// Of how many blocks, a chunk if there are several; and which of their values are computed again.
struct FewBlocks {
  int64_t blocks = 1;
  bool splits_backward = false;  // as zero_bubble does
  int64_t kinds = 0;             // of values (PassContext::recompute_kinds)
  double budget_gib = 0;         // that the whole step has
  auto operator<=>(const FewBlocks&) const = default;
};

class BlockCosts {
 public:
  /// Of all layouts that have this one's key.
  BlockCosts(const RunConfig& run, const ParallelLayout& layout) : run_(run), layout_(layout) {}

  /// Without a pipeline of a step, with one of its first stage, one in the middle and the last one. UserError where the
  /// compiler refuses the layout. Any thread may ask.
  const std::vector<StageCost>& at(FewBlocks few, const Platform& platform);

 private:
  std::vector<CompiledStep> compile(const FewBlocks& few, const Platform& platform);

  RunConfig run_;
  ParallelLayout layout_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, double>, StepOfKinds> begun_;  // without a pipeline, by blocks and budget
  std::map<FewBlocks, std::vector<CompiledStep>> steps_;
  std::vector<Target> targets_;
  std::map<std::pair<size_t, FewBlocks>, std::vector<StageCost>> costs_;  // by place among the targets
};

}  // namespace tokamak
