// A machine's own GPUs as a cluster, with what was measured of them. Tests: tests/advise/this_machine_test.cpp.
#pragma once

#include "config/cluster_config.h"

#include <cstdint>
#include <string>

namespace tokamak {

struct MeasuredGpu {
  std::string name;  // as its driver has it
  int major = 0, minor = 0;
  int64_t multiprocessors = 0, l2_bytes = 0, shared_bytes = 0;
  int64_t free_bytes = 0;       // before anything is allocated
  double memory_bandwidth = 0;  // as described: what copies reach, by their usual share of it
};

/// A node of `count` of them, without price. Peak rates and power are those of the known kind, links those of a shipped
/// cluster of that kind; where there is none, the node has one GPU. UserError for a kind that is not known.
ClusterConfig this_machine(const MeasuredGpu& gpu, int64_t count);

}  // namespace tokamak
