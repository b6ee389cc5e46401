#include "advise/links.h"

#include "passes/step_mesh.h"

#include <algorithm>

namespace tokamak {

Link axis_link(const ClusterConfig& cluster, int64_t stride, int64_t size) {
  if (stride * size <= cluster.gpus_per_node) return {cluster.within.bandwidth.value, cluster.within.latency.value};
  auto ranks_of_node = double(std::max<int64_t>(cluster.gpus_per_node / stride, 1));
  double out = cluster.between.bandwidth.value * ranks_of_node;
  if (ranks_of_node > 1) out = std::min(out, cluster.within.bandwidth.value);
  return {out, cluster.between.latency.value};
}

Platform with_links(Platform platform, const ClusterConfig& cluster, const MeshConfig& config) {
  Mesh mesh = step_mesh(config);
  int64_t stride = 1;
  for (auto axis = mesh.axes.rbegin(); axis != mesh.axes.rend(); stride *= axis->size, ++axis) {
    if (axis->size == 1) continue;
    Link link = axis_link(cluster, stride, axis->size);
    platform.target.axis_links[axis->name] = {link.bandwidth, link.latency};
  }
  return platform;
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
