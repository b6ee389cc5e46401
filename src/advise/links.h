// What collectives and transfers take on the links of a cluster. Ranks are numbered so that the innermost axis has
// neighbours: an axis' ranks are `stride` apart. Tests: tests/advise/links_test.cpp.
#pragma once

#include "config/cluster_config.h"
#include "config/mesh_config.h"
#include "graph/platform.h"

#include <cstdint>

namespace tokamak {

struct Link {
  double bandwidth = 0;  // bytes/s that a rank sends
  double latency = 0;    // seconds
};

/// Of an axis of `size` ranks. One that leaves its node sends over as many ways out of it as it has ranks there.
Link axis_link(const ClusterConfig& cluster, int64_t stride, int64_t size);

/// The platform with the links of each axis of the mesh.
Platform with_links(Platform platform, const ClusterConfig& cluster, const MeshConfig& mesh);

/// Each for a tensor of so many bytes, whole; nothing for one rank.
double all_reduce_seconds(const Link& link, int64_t size, double bytes);
double all_gather_seconds(const Link& link, int64_t size, double bytes);  // and reduce_scatter
double send_seconds(const Link& link, double bytes);

}  // namespace tokamak
