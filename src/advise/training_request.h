// What is to be trained, and where. Tests: tests/advise/search_test.cpp.
#pragma once

#include "advise/block_costs.h"
#include "advise/layout.h"
#include "advise/recompute_curve.h"
#include "config/cluster_config.h"

#include <functional>
#include <limits>
#include <memory>
#include <mutex>

namespace tokamak {

/// Blocks that were compiled already, by layouts' keys; without one for another GPU, model or run.
class BlockLibrary {
 public:
  /// Those of the layout's key. Any thread may ask.
  BlockCosts& of(const RunConfig& run, const ParallelLayout& layout) {
    std::lock_guard lock(mutex_);
    BlockKey key = block_key(layout), of_mesh = key;
    std::get<kMicroBatchOfKey>(of_mesh) = 0;
    return blocks_.try_emplace(key, run, layout, updates_[of_mesh]).first->second;
  }
  size_t size() const { return blocks_.size(); }
  /// Made when it is first asked for, with the rates that count then.
  const RecomputeCurve& curve(const std::function<RecomputeCurve()>& make) { return curve_.get(make); }

 private:
  MadeOnce<RecomputeCurve> curve_;
  std::mutex mutex_;
  std::map<BlockKey, UpdatesOfMesh> updates_;  // by keys with a micro-batch of none
  std::map<BlockKey, BlockCosts> blocks_;
};

/// A GPU's platform where its kernels are not known: it has one for everything.
Platform platform_of_rates(const GpuConfig& gpu);

struct TrainingRequest {
  RunConfig run;
  ClusterConfig cluster;
  int64_t gpus = 1;
  int64_t sequences = 1;  // of a step
  double tokens = 0;      // to train on
  std::vector<ScheduleChoice> schedules = usual_schedules();
  std::function<bool(const ParallelLayout&)> allows = [](const ParallelLayout&) { return true; };
  std::function<Platform(const GpuConfig&)> platform = platform_of_rates;
  size_t wanted = 5;  // of the fastest meshes, so many are sure to be the fastest; of the others some are not found
  /// Of groups of blocks that are compiled, after which a search ends that has found something; 0: when it is sure of
  /// the fastest.
  int rounds = 0;
  double most = std::numeric_limits<double>::infinity();  // seconds of a step: what takes longer is not looked for
  /// What copies of a request share: they may change rates, numbers of GPUs and what is allowed, but not the run.
  std::shared_ptr<BlockLibrary> library = std::make_shared<BlockLibrary>();
};

double tokens_of_step(const TrainingRequest& request);

/// The optimizer steps that all tokens take, the last one in full.
double steps_of(const TrainingRequest& request);

/// What a whole training takes.
struct TrainingCost {
  double tokens_per_second = 0;
  double seconds = 0;
  double mfu_full = 0, mfu_causal = 0;  // of the peak of bf16, with attention over all pairs and over those seen
  double kilowatt_hours = 0;
  double dollars = 0;  // 0: the cluster has no price
};
TrainingCost cost_of(const TrainingRequest& request, double step_seconds);

}  // namespace tokamak
