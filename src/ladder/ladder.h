// The speed ladder: the same training step with one optimisation after the other switched on, predicted and measured.
// Tests: tests/ladder/ladder_test.cpp.
#pragma once

#include "backend/backend.h"
#include "config/config.h"
#include "ladder/rungs.h"
#include "model/utilization.h"

#include <functional>
#include <string>
#include <vector>

namespace tokamak {

struct RungResult {
  std::string name;
  RunConfig config;  // that it ran with
  Precision precision = Precision::kFp32;
  /// Milliseconds for the tokens of one optimizer step of the configuration, median of the timed ones. (A rung with
  /// more micro-batches a step than the configuration has is scaled to as many tokens.) Of a rung that was measured
  /// several times, the median of those.
  double ms = 0;
  double least_ms = 0, most_ms = 0;  // of the timed steps
  /// Of a rung that seemed slower than the one before, which were then measured in turns: the ms of each time, of both.
  std::vector<double> repeats, repeats_before;
  double predicted_ms = 0;
  double tokens_per_second = 0;
  double speedup_step = 1;    // over the last rung that was kept
  double speedup_total = 1;   // over the first that was measured
  double mfu = 0;             // of all ranks' `peak`, with all of attention: see model/utilization.h
  double mfu_causal = 0;      // with the half of attention that the mask lets through
  Peak peak;                  // of a rank
  double model_gflops = 0;    // 1e9 FLOPs of the model a second, of all ranks
  int64_t planned_bytes = 0;  // CompiledStep::total_bytes; of a rung that ran, scratch memory as its kernels took it
  int64_t used_bytes = 0;     // growth of what the process has of the device's memory
  /// What its device used of a load before the timed steps; 0: there was none, or the device does not tell.
  double joules_per_token = 0;
  double first_step_ms = 0;   // compiling, allocating and the first step
  int64_t micro_batches = 1;  // of an optimizer step
  int64_t step_tokens = 0;    // of that step, of all ranks
  bool optional = false;
  bool changed = true;       // false: program and plan are those of the rung before, nothing was measured again
  bool kept = true;          // false: slower here, or optional: the rungs after it go on without it
  std::string by_reference;  // kernels that ran on the host, as there are none here: "attention x12"; else empty
  std::string products;      // with fp8 a table of products that have eight bits, and why others have not; else empty
  std::string failure;       // why it could not run: "does not fit (needs 1.20 GiB, 1.00 GiB are free)"; else empty

  bool ran() const { return failure.empty(); }
  double prediction_error() const { return predicted_ms / ms - 1; }
  /// How far timed steps lie apart, as a share of the median.
  double spread() const { return (most_ms - least_ms) / ms; }
};

/// Of at least one value; of an even number of them the mean of the two in the middle.
double median(std::vector<double> values);

struct LadderOptions {
  int64_t steps = 10;
  int64_t warmup = 1;
  /// Times every step by the backend's own clock, as a device with a queue needs; else steps run on a queue's thread
  /// and the host's clock is read.
  bool device_clock = false;
  /// If more than 0, what was kept is measured once more, aside, after so long a load: under it a device that is at its
  /// limit of power or heat lowers its clocks, as it does in a real run.
  double load_seconds = 0;
};

/// Runs the rungs of `config` on random tokens. `report` is called after each. A rung that seems slower than the last
/// kept one is measured again, in turns with that one, and their medians count: something else may have run meanwhile.
/// A rung that needs more memory than there is is reported with its `failure`; the rungs after it still build on its
/// change.
std::vector<RungResult> run_ladder(const RunConfig& config, const Platform& platform, Backend& backend,
                                   std::span<const Rung> rungs, const LadderOptions& options,
                                   const std::function<void(const RungResult&)>& report);

}  // namespace tokamak
