// What collectives and transfers take on the links of a cluster. Ranks are numbered so that the innermost axis has
// neighbours: an axis' ranks are `stride` apart. Tests: tests/advise/links_test.cpp.
#pragma once

#include "config/cluster_config.h"

#include <cstdint>

namespace tokamak {

struct Link {
  double bandwidth = 0;      // bytes/s that a rank sends
  double latency = 0;        // seconds
  bool leaves_node = false;  // so that a library's kernels send; within a node copy engines do
};

/// What these kernels take of a GPU's units from what runs beside them: on two H200s matrix products beside an
/// all_reduce by NCCL took 1.27 times as long.
inline constexpr double kNetworkUnits = 0.21;

/// Of an axis of `size` ranks. One that leaves its node sends over as many ways out of it as it has ranks there.
Link axis_link(const ClusterConfig& cluster, int64_t stride, int64_t size);

/// Each for a tensor of so many bytes, whole; nothing for one rank.
double all_reduce_seconds(const Link& link, int64_t size, double bytes);
double all_gather_seconds(const Link& link, int64_t size, double bytes);  // and reduce_scatter
double send_seconds(const Link& link, double bytes);

}  // namespace tokamak
