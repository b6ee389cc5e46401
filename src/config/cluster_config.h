// A machine or many of them to train on, as plain data: nodes of equal GPUs, and links of two levels.
#pragma once

#include "config/gpu_config.h"

#include <cstdint>
#include <string>

namespace tokamak {

struct LinkConfig {
  Figure bandwidth;  // bytes/s that a GPU sends in a collective
  Figure latency;    // seconds that a collective of few bytes takes: within a node, between two nodes
};

/// What stops a run on many GPUs. Unknown figures are as advise/failures.cpp has them.
struct FailureConfig {
  Figure mtbf;        // seconds that one GPU, with its part of the host and the network, runs between such failures
  Figure restart;     // seconds from a failure to the next step
  Figure checkpoint;  // seconds that a checkpoint holds up a run
};

struct ClusterConfig {
  std::string name;
  std::string summary;
  int64_t nodes = 0;  // that there are; 0: as many as one wants
  int64_t gpus_per_node = 1;
  GpuConfig gpu;
  LinkConfig within;   // a node; unknown where it has one GPU
  LinkConfig between;  // nodes; unknown where there is one
  Figure node_power;   // watts of a node that trains, GPUs and all
  Figure price;        // dollars that a GPU costs an hour; unknown: none is published
  FailureConfig failures;
};

}  // namespace tokamak
