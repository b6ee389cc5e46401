#include "advise/links.h"

#include <algorithm>

namespace tokamak {

Link axis_link(const ClusterConfig& cluster, int64_t stride, int64_t size) {
  if (stride * size <= cluster.gpus_per_node) return {cluster.within.bandwidth.value, cluster.within.latency.value};
  auto ranks_of_node = double(std::max<int64_t>(cluster.gpus_per_node / stride, 1));
  double out = cluster.between.bandwidth.value * ranks_of_node;
  if (ranks_of_node > 1) out = std::min(out, cluster.within.bandwidth.value);
  return {out, cluster.between.latency.value};
}

double all_gather_seconds(const Link& link, int64_t size, double bytes) {
  if (size == 1) return 0;
  return bytes * double(size - 1) / double(size) / link.bandwidth + link.latency;
}

double all_reduce_seconds(const Link& link, int64_t size, double bytes) {
  if (size == 1) return 0;
  return 2 * bytes * double(size - 1) / double(size) / link.bandwidth + link.latency;
}

double send_seconds(const Link& link, double bytes) { return bytes / link.bandwidth + link.latency; }

}  // namespace tokamak
