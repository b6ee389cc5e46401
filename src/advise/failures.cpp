#include "advise/failures.h"

#include "advise/day.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// Llama 3's 54 days on 16,384 GPUs, in which 419 interruptions were not planned.
constexpr double kMtbf = 54 * kDay * 16384 / 419;
constexpr const char* kMtbfSource =
    "Llama 3 (arXiv 2407.21783): 419 unexpected interruptions in 54 days of 16,384 H100, one in 5.8 years of a GPU";

constexpr double kRestart = 600;
constexpr const char* kRestartSource = "arXiv 2602.00277: 10 minutes a failure of synchronous training on O(100K) GPUs";

// Bytes/s: each of two H200 had 0.70 GiB of 124M's states, and no step ran for 0.115 s.
constexpr double kSaved = 1.39 / 2 * (1 << 30) / 0.115;
constexpr const char* kSavedSource =
    "what a GPU has of parameters and states, at 6.5 GB/s: bench/results/2026-11-27-h200-x2-saves.txt";

void complete(Figure& figure, double value, const char* source) {
  if (!figure.is_known()) figure = {value, source};
}

// Daly's equation 37.
double best_interval(double checkpoint, double between) {
  double half = checkpoint / (2 * between);
  if (half >= 1) return between;
  return std::sqrt(2 * checkpoint * between) * (1 + std::sqrt(half) / 3 + half / 9) - checkpoint;
}

// The share of the time in which more nodes are away than stand by: Erlang's loss formula, with
// failures that come while it runs, each for one node, and any distribution of repairs.
double waiting_share(const FailureConfig& failures, double between) {
  if (!failures.repair.is_known()) return 0;
  double away = failures.repair.value / between, share = 1;
  for (int64_t node = 1; node <= failures.spares + 1; ++node) share = away * share / (double(node) + away * share);
  return share;
}

}  // namespace

FailureConfig failures_of(const ClusterConfig& cluster, double state_bytes) {
  FailureConfig failures = cluster.failures;
  complete(failures.mtbf, kMtbf, kMtbfSource);
  complete(failures.restart, kRestart, kRestartSource);
  complete(failures.checkpoint, state_bytes / kSaved, kSavedSource);
  return failures;
}

// Daly's equation 20: of the time without restarts, which may fail as well, training keeps as many seconds of an
// interval as are expected to pass until it and its checkpoint are through. Storage takes one checkpoint at a time, and
// what fails before it has the last one goes back to that before; a restart reads it all.
PlannedGoodput goodput(const ClusterConfig& cluster, int64_t gpus, const CheckpointBytes& bytes) {
  PlannedGoodput g{.by = failures_of(cluster, bytes.gpu)};
  double checkpoint = g.by.checkpoint.value;
  if (g.by.storage.is_known()) g.writing = bytes.all / g.by.storage.value;
  g.between = g.by.mtbf.value / double(gpus);
  g.interval = std::max(best_interval(checkpoint, g.between), g.writing);
  g.waiting = waiting_share(g.by, g.between);
  double there = 1 - g.waiting;
  double running = there * std::exp(-std::max(g.by.restart.value, g.writing) / g.between);
  double in_time = g.interval / g.between / std::expm1((g.interval + checkpoint) / g.between);
  g.share = running * in_time * std::exp(-g.writing / g.between);
  g.restarting = there - running;
  g.checkpointing = g.share * checkpoint / g.interval;
  g.repeated = running - g.share - g.checkpointing;
  return g;
}

bool expects_failures(const PlannedGoodput& goodput, double seconds) { return seconds >= goodput.between; }

}  // namespace tokamak
