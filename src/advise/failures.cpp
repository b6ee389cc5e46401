#include "advise/failures.h"

#include "advise/day.h"

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

}  // namespace

FailureConfig failures_of(const ClusterConfig& cluster, double state_bytes) {
  FailureConfig failures = cluster.failures;
  complete(failures.mtbf, kMtbf, kMtbfSource);
  complete(failures.restart, kRestart, kRestartSource);
  complete(failures.checkpoint, state_bytes / kSaved, kSavedSource);
  return failures;
}

// Daly's equation 20: of the time without restarts, which may fail as well, training keeps as many seconds of an
// interval as are expected to pass until it and its checkpoint are through.
Goodput goodput(const ClusterConfig& cluster, int64_t gpus, double state_bytes) {
  Goodput g{.by = failures_of(cluster, state_bytes)};
  double checkpoint = g.by.checkpoint.value;
  g.between = g.by.mtbf.value / double(gpus);
  g.interval = best_interval(checkpoint, g.between);
  double running = std::exp(-g.by.restart.value / g.between);
  g.share = running * g.interval / g.between / std::expm1((g.interval + checkpoint) / g.between);
  g.restarting = 1 - running;
  g.checkpointing = g.share * checkpoint / g.interval;
  g.repeated = running - g.share - g.checkpointing;
  return g;
}

bool expects_failures(const Goodput& goodput, double seconds) { return seconds >= goodput.between; }

}  // namespace tokamak
