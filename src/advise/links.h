// What collectives and transfers take on the links of a cluster. Ranks are numbered so that the innermost axis has
// neighbours: an axis' ranks are `stride` apart. Within a node and between two a collective has one fixed latency; each
// node more adds to it, by rings and trees as NCCL chooses them (its src/graph/tuning.cc). Tests:
// tests/advise/links_test.cpp.
#pragma once

#include "config/cluster_config.h"
#include "config/mesh_config.h"
#include "graph/platform.h"

#include <cstdint>

namespace tokamak {

struct Link {
  double bandwidth = 0;  // bytes/s that a rank sends
  double latency = 0;    // seconds, within a node or between two
  // What nodes beyond two add, in seconds: to each round of a ring and to a tree; the same in small messages.
  double round = 0, tree = 0, round_low = 0, tree_low = 0;
  // Of a sum in switches: the bandwidth of what a rank would send around a ring, and what switches add; 0: there is
  // none.
  double sums = 0, switches = 0;
  double parallel_trees = 0;  // what nodes beyond two add to a gather by such trees; 0: there are none

  bool grows() const { return round > 0; }
};

/// Of an axis of `size` ranks. One that leaves its node sends over as many ways out of it as it has ranks there, and
/// over those of a fabric's switches that it shares.
Link axis_link(const ClusterConfig& cluster, int64_t stride, int64_t size);

/// The platform with the links of each axis of the mesh, their ways, and what a collective over them takes of the
/// device (cost/link_ways.h).
Platform with_links(Platform platform, const ClusterConfig& cluster, const MeshConfig& mesh);

/// Each for a tensor of so many bytes, whole; nothing for one rank.
double all_reduce_seconds(const Link& link, int64_t size, double bytes);
double all_gather_seconds(const Link& link, int64_t size, double bytes);  // and reduce_scatter
double send_seconds(const Link& link, double bytes);

}  // namespace tokamak
