// A machine or many of them to train on, as plain data: nodes of equal GPUs, and links of two levels.
#pragma once

#include "config/gpu_config.h"

#include <cstdint>
#include <string>

namespace tokamak {

struct LinkConfig {
  Figure bandwidth;  // bytes/s that a GPU sends in a collective
  Figure latency;    // seconds that a collective of few bytes takes: within a node, between two nodes
  Figure hop;        // seconds that one more GPU or node adds to a round of a ring; unknown: as NCCL has it
  Figure sums;  // bytes/s of a tensor that switches add up: NVLS within a node, SHARP by a GPU; unknown: they do not
};

/// Switches between nodes: leaves, each below spines, and pods of them. Unknown figures: there is no such limit.
struct FabricConfig {
  Figure leaf_ports;        // of a leaf switch, to GPUs
  bool rails = false;       // GPUs of a node have leaves of their own: those of one number share a leaf
  Figure switch_latency;    // seconds that one more switch adds
  Figure spine_share;       // of the bandwidth, what flows over spines keep beside others
  Figure pod_nodes;         // nodes among which links have their full bandwidth
  Figure oversubscription;  // of a pod's way out: how many times what it carries its GPUs could send
  bool pat = false;         // gathers of one GPU a node can go by NCCL's parallel aggregated trees
};

/// What stops a run on many GPUs. Unknown figures are as advise/failures.cpp has them.
struct FailureConfig {
  Figure mtbf;         // seconds that one GPU, with its part of the host and the network, runs between such failures
  Figure restart;      // seconds from a failure to the next step
  Figure checkpoint;   // seconds that a checkpoint holds up a run
  Figure storage;      // bytes/s that all GPUs together write to it; unknown: as fast as they have checkpoints
  Figure repair;       // seconds that a failed node is away; unknown: another is always there
  int64_t spares = 0;  // nodes that stand by for failed ones
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
  FabricConfig fabric;
  FailureConfig failures;
};

}  // namespace tokamak
