// The layouts that train a model on a cluster, the fastest first, and what a change of model, cluster or layout would
// do. Closed formulas alone: it takes milliseconds. Tests: tests/advise/search_test.cpp.
#pragma once

#include "advise/estimate.h"

#include <functional>
#include <string>
#include <vector>

namespace tokamak {

struct TrainingRequest {
  ModelConfig model;
  ClusterConfig cluster;
  int64_t gpus = 1;
  int64_t sequences = 1;  // of a step
  double tokens = 0;      // to train on
  std::vector<ScheduleChoice> schedules = usual_schedules();
  std::function<bool(const ParallelLayout&)> allows = [](const ParallelLayout&) { return true; };
};

double tokens_of_step(const TrainingRequest& request);

/// The optimizer steps that all tokens take, the last one in full.
double steps_of(const TrainingRequest& request);

/// The fastest micro-batch of each mesh that fits, fastest first. Empty where none does.
std::vector<Estimate> search_layouts(const TrainingRequest& request);

/// Of all that are allowed the one that needs least memory, whether it fits or not; UserError when the model allows
/// none on so many GPUs.
Estimate smallest_layout(const TrainingRequest& request);

bool fits(const Estimate& estimate, const ClusterConfig& cluster);

/// What a whole training takes.
struct TrainingCost {
  double tokens_per_second = 0;
  double seconds = 0;
  double mfu_full = 0, mfu_causal = 0;  // of the peak of bf16, with attention over all pairs and over those seen
  double kilowatt_hours = 0;
  double dollars = 0;  // 0: the cluster has no price
};
TrainingCost cost_of(const TrainingRequest& request, double step_seconds);

/// Something else than is planned for, and how much faster that would train: 0.1 is 10% more tokens/s. Where nothing
/// fits any more, is_possible is false.
struct Change {
  std::string what;
  bool is_possible = true;
  double gain = 0;
};

/// Twice and half of each figure of the cluster, with the layout that is best then; twice and half the GPUs.
std::vector<Change> cluster_changes(const TrainingRequest& request, const Estimate& best);

/// The layout's own neighbours: half and twice the micro-batch, one more and one less of ZeRO's stages, of a pipeline
/// the other schedules; and the best with half and twice the ranks of each other axis, which data gives or takes.
std::vector<Change> layout_changes(const TrainingRequest& request, const Estimate& best);

/// "limited by ...": of what twice as much would help most, and by how much each would.
std::string limit_of(const std::vector<Change>& changes, const Estimate& best);

}  // namespace tokamak
