#include "ladder/ladder.h"

#include "config/config.h"
#include "ladder/trial.h"
#include "plan/print_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tokamak {
namespace {

// A rung that is slower by less than this may be noise, and is no reason to go on without it.
constexpr double kHostNoise = 1.1, kDeviceNoise = 1.03;

// Everything by which a rung may differ from another: where it is equal, so is the run.
std::string fingerprint(const CompiledStep& step) {
  const CompileConfig& c = step.resolved.compile;
  std::string text = fmt::format("{} async {} cuda_graph {} deterministic {} schedule {}\n",
                                 precision_name(c.precision), c.async, c.cuda_graph, c.deterministic, print_runs(step));
  for (const CompiledGraph& program : step.programs) text += print_plan(program.plan);
  return text;
}

class Ladder {
 public:
  Ladder(const RunConfig& config, const Platform& platform, Backend& backend, const LadderOptions& options)
      : config_(config), step_tokens_(config.step_tokens()), platform_(platform), backend_(backend), options_(options) {
  }

  RungResult climb(const Rung& rung) {
    RunConfig trial = config_;
    rung.switch_on(trial, kept_arena_bytes_);
    PreparedTrial prepared = prepare(trial);
    std::string print = fingerprint(prepared.run.stages[0]);
    bool changed = !kept_ || print != kept_print_;
    RungResult result = changed ? measure(prepared) : *kept_;
    // A loss is measured once more before it is believed: something else may have run on the machine meanwhile.
    if (result.ran() && !rung.optional && kept_ && result.ms > slowest_kept_ms()) {
      prepared.begin = std::chrono::steady_clock::now();
      RungResult again = measure(prepared);
      if (again.ran() && again.ms < result.ms) result = again;
    }
    result.name = rung.name;
    result.config = trial;
    result.optional = rung.optional;
    result.changed = changed;
    compare(result);
    if (rung.optional) return result;
    // What does not fit is no slower for that: the rungs after it build on it, and may need less memory.
    if (result.kept || !result.ran()) config_ = trial;
    if (!result.kept) return result;
    kept_ = result;
    kept_print_ = std::move(print);
    kept_arena_bytes_ = prepared.run.stages[0].largest().plan.arena_bytes;
    return result;
  }

  // What has been kept, once more when the device is warm and at its limit of power.
  RungResult sustain() {
    PreparedTrial prepared = prepare(config_);
    RungResult result = measure(prepared, options_.load_seconds);
    result.name = fmt::format("the top, after {:.3g} s of it", options_.load_seconds);
    result.optional = true;
    compare(result);
    return result;
  }

 private:
  double slowest_kept_ms() const { return kept_->ms * (options_.device_clock ? kDeviceNoise : kHostNoise); }

  void compare(RungResult& result) {
    result.kept = result.ran() && !result.optional && (!kept_ || result.ms <= slowest_kept_ms());
    if (!result.ran()) return;
    if (first_ms_ == 0) first_ms_ = result.ms;
    result.speedup_step = kept_ ? kept_->ms / result.ms : 1;
    result.speedup_total = first_ms_ / result.ms;
  }

  // Kernels that were measured once are known to the rungs after it.
  PreparedTrial prepare(const RunConfig& config) {
    PreparedTrial prepared = prepare_trial(resolve(config, platform_.target), platform_, backend_);
    platform_.tuning.measured_seconds = prepared.platform.tuning.measured_seconds;
    return prepared;
  }

  RungResult measure(PreparedTrial& prepared, double load_seconds = 0) {
    RungResult result = measure_trial(prepared, backend_, options_, load_seconds);
    if (!result.ran()) return result;
    double share = double(step_tokens_) / double(result.step_tokens);
    result.ms *= share;
    result.predicted_ms *= share;
    return result;
  }

  RunConfig config_;  // with all that was kept
  int64_t step_tokens_;
  Platform platform_;  // with kernels as they are measured
  Backend& backend_;
  LadderOptions options_;
  std::optional<RungResult> kept_;
  std::string kept_print_;
  int64_t kept_arena_bytes_ = 0;
  double first_ms_ = 0;
};

}  // namespace

std::vector<RungResult> run_ladder(const RunConfig& config, const Platform& platform, Backend& backend,
                                   std::span<const Rung> rungs, const LadderOptions& options,
                                   const std::function<void(const RungResult&)>& report) {
  require_one_rank(resolve(config, platform.target));
  Ladder ladder(config, platform, backend, options);
  std::vector<RungResult> results;
  for (const Rung& rung : rungs) {
    results.push_back(ladder.climb(rung));
    if (report) report(results.back());
  }
  bool any = std::any_of(results.begin(), results.end(), [](const RungResult& rung) { return rung.kept; });
  if (options.load_seconds > 0 && any) {
    results.push_back(ladder.sustain());
    if (report) report(results.back());
  }
  return results;
}

}  // namespace tokamak
