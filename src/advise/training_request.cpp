#include "advise/training_request.h"

#include "graph/gpu_target.h"
#include "model/model.h"
#include "model/utilization.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

Platform platform_of_rates(const GpuConfig& gpu) { return Platform(gpu_target(gpu_rates(gpu))); }

double tokens_of_step(const TrainingRequest& request) {
  return double(request.sequences) * double(request.run.model.context);
}

double steps_of(const TrainingRequest& request) {
  return std::max(std::ceil(request.tokens / tokens_of_step(request)), 1.0);
}

TrainingCost cost_of(const TrainingRequest& request, double step_seconds) {
  const ClusterConfig& cluster = request.cluster;
  constexpr double kHour = 3600;
  TrainingCost cost;
  cost.tokens_per_second = tokens_of_step(request) / step_seconds;
  cost.seconds = request.tokens / cost.tokens_per_second;
  Utilization used = utilization(flops_per_token(request.run.model), cost.tokens_per_second,
                                 cluster.gpu.half_flops.value * double(request.gpus));
  cost.mfu_full = used.full;
  cost.mfu_causal = used.causal;
  double nodes = double(request.gpus) / double(cluster.gpus_per_node);
  cost.kilowatt_hours = cluster.node_power.value * 1e-3 * nodes * cost.seconds / kHour;
  cost.dollars = cluster.price.value * double(request.gpus) * cost.seconds / kHour;
  return cost;
}

}  // namespace tokamak
