#include "advise/nearest.h"

#include "config/cluster.h"

#include <algorithm>

namespace tokamak {
namespace {

std::optional<Nearest> nearest_of_cluster(TrainingRequest request, const std::string& name) {
  const ClusterConfig& cluster = request.cluster;
  int64_t most =
      request.sequences * cluster.gpus_per_node;  // data ranks of a sequence each, over nodes of tensor ranks
  if (cluster.nodes > 0) most = std::min(most, cluster.nodes * cluster.gpus_per_node);
  request.wanted = 1;
  for (; request.gpus <= most; request.gpus *= 2)
    if (std::vector<Estimate> found = search_layouts(request); !found.empty())
      return Nearest{found[0], request.gpus, name};
  return {};
}

}  // namespace

std::optional<Nearest> find_nearest(const TrainingRequest& request, const std::vector<ParallelLayout>& passed_over) {
  TrainingRequest free = request;
  free.allows = [&](const ParallelLayout& layout) {
    auto is_same = [&](ParallelLayout other) {
      other.budget_gib = 0;
      return layout.gpus() == request.gpus && describe(layout) == describe(other);
    };
    return std::none_of(passed_over.begin(), passed_over.end(), is_same);
  };
  std::optional<Nearest> best = nearest_of_cluster(free, "");
  if (best) return best;
  for (const std::string& name : cluster_names()) {
    free.cluster = read_cluster(name);
    free.gpus = 1;
    free.library = std::make_shared<BlockLibrary>();
    free.allows = [](const ParallelLayout&) { return true; };
    std::optional<Nearest> other = nearest_of_cluster(free, name);
    if (other && (!best || other->gpus < best->gpus)) best = other;
  }
  return best;
}

}  // namespace tokamak
