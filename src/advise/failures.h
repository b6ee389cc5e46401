// What failures and checkpoints take of a training on many GPUs: with one failure each M seconds, checkpoints are
// written after so many seconds of training that least is lost (J. T. Daly, A higher order estimate of the optimum
// checkpoint interval for restart dumps, Future Generation Computer Systems 22, 2006). Where a cluster says so, also
// what the bandwidth of storage and nodes that wait for repair take. Tests: tests/advise/failures_test.cpp.
#pragma once

#include "config/cluster_config.h"

#include <cstdint>

namespace tokamak {

/// The cluster's figures, and the usual ones where it has none; `state_bytes` are what a GPU has of parameters and the
/// optimizer's state, which a checkpoint copies.
FailureConfig failures_of(const ClusterConfig& cluster, double state_bytes);

/// What a run has of parameters and states: of a GPU, which are copied when a checkpoint begins, and of all GPUs, each
/// once, which storage keeps.
struct CheckpointBytes {
  double gpu = 0, all = 0;
};

struct PlannedGoodput {
  FailureConfig by;          // what it follows from
  double between = 0;        // seconds from one failure among all GPUs to the next
  double interval = 0;       // seconds of training from one checkpoint to the next
  double share = 1;          // of the time, what training keeps;
  double checkpointing = 0;  // the rest goes to checkpoints,
  double restarting = 0;     // to restarts,
  double repeated = 0;       // and to what was done since the last checkpoint, again,
  double waiting = 0;        // and to waits for nodes that are repaired
  double writing = 0;        // seconds until storage has a checkpoint, beside steps; 0: nothing is known of it
};

/// Of a training on so many GPUs, each of which can stop all.
PlannedGoodput goodput(const ClusterConfig& cluster, int64_t gpus, const CheckpointBytes& bytes);

/// Whether one is to be expected in so many seconds of training.
bool expects_failures(const PlannedGoodput& goodput, double seconds);

}  // namespace tokamak
