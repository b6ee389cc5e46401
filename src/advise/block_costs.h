// What blocks of a model take on a rank, from compiled steps of few of them. Layouts that differ in the number of
// blocks, stages, micro-batches or the order of a pipeline are made of the same ones, which are compiled once; other
// rates only price them anew. Tests: tests/advise/block_costs_test.cpp.
#pragma once

#include "advise/layout.h"
#include "advise/stage_cost.h"
#include "base/made_once.h"
#include "compile/pipe_compiler.h"
#include "compile/step_compiler.h"
#include "graph/platform.h"

#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

namespace tokamak {

/// Layouts with equal keys are made of the same blocks.
using BlockKey = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool>;
BlockKey block_key(const ParallelLayout& layout);
inline constexpr size_t kMicroBatchOfKey = 5;

/// Of how many blocks, a chunk if there are several; and which of their values are computed again.
struct FewBlocks {
  int64_t blocks = 1;
  size_t stage = 0;              // of a pipeline: the first, one in the middle or the last (2)
  bool splits_backward = false;  // as zero_bubble does
  int64_t kinds = 0;             // of values (PassContext::recompute_kinds)
  double budget_gib = 0;         // that the whole step has
  // Whether data ranks add gradients up beside the last micro-batch, where the compiler has the choice; none: it
  // chooses for these blocks, and may choose otherwise for others.
  std::optional<bool> sums_with_last = {};
  auto operator<=>(const FewBlocks&) const = default;
};

/// Updates of layouts that differ in their micro-batch alone.
class UpdatesOfMesh {
 public:
  struct Key {
    int64_t blocks = 1;
    size_t stage = 0;         // of a pipeline
    bool is_reduced = false;  // whether its gradients have been added up over data ranks
    double budget_gib = 0;
    auto operator<=>(const Key&) const = default;
  };
  MadeOnce<StageUpdate>& at(const Key& key) {
    std::lock_guard lock(mutex_);
    return updates_[key];
  }

 private:
  std::mutex mutex_;
  std::map<Key, MadeOnce<StageUpdate>> updates_;
};

class BlockCosts {
 public:
  /// Of all layouts that have this one's key. `updates` are those of its mesh, and outlive it.
  BlockCosts(const RunConfig& run, const ParallelLayout& layout, UpdatesOfMesh& updates)
      : run_(run), layout_(layout), updates_(updates) {}
  BlockCosts(const RunConfig& run, const ParallelLayout& layout) : BlockCosts(run, layout, own_updates_) {}

  /// Of a step, or with a pipeline of one of its stages. UserError where the compiler refuses the layout. Any thread
  /// may ask.
  const StageCost& at(FewBlocks few, const Platform& platform);
  /// Whether the compiler chooses where data ranks add gradients up.
  bool has_choice() const;

 private:
  const CompiledStep& step(const FewBlocks& few, const Platform& platform);
  CompiledStep compile(const FewBlocks& few, const Platform& platform);
  FewBlocks known(FewBlocks few) const;
  template <typename Key, typename T>
  MadeOnce<T>& entry(std::map<Key, MadeOnce<T>>& of, const Key& key) {
    std::lock_guard lock(mutex_);
    return of[key];
  }
  size_t place_of(const Target& target);

  RunConfig run_;
  ParallelLayout layout_;
  UpdatesOfMesh own_updates_;  // where nobody else has them
  UpdatesOfMesh& updates_;
  std::mutex mutex_;  // of what follows, but not while an entry is made
  std::map<std::pair<int64_t, double>, MadeOnce<StepOfKinds>> begun_steps_;  // by blocks and bytes of logits
  std::map<std::tuple<int64_t, double, bool, std::string>, MadeOnce<PipelineOfKinds>>
      begun_pipelines_;  // by blocks, budget, splits_backward, reduce_gradients
  std::map<FewBlocks, MadeOnce<CompiledStep>> steps_;
  std::vector<Target> targets_;
  std::map<std::pair<size_t, FewBlocks>, MadeOnce<StageCost>> costs_;  // by place among the targets
};

}  // namespace tokamak
