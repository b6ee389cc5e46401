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
constexpr int kRepeats = 2;  // of a rung that seems slower, beside the first time

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

  bool applies(const Rung& rung) const { return tokamak::applies(rung, config_, kept_arena_bytes_); }

  RungResult climb(const Rung& rung) {
    RunConfig trial = config_;
    rung.switch_on(trial, kept_arena_bytes_);
    PreparedTrial prepared = prepare(trial);
    std::string print = fingerprint(prepared.run.stages[0]);
    bool changed = !kept_ || print != kept_print_;
    RungResult result = changed ? measure(prepared) : *kept_;
    if (result.ran() && !rung.optional && kept_ && is_slower(result.ms, kept_->ms)) repeat(prepared, result);
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
  bool is_slower(double ms, double than) const {
    return ms > than * (options_.device_clock ? kDeviceNoise : kHostNoise);
  }

  void compare(RungResult& result) {
    double before = !result.repeats_before.empty() ? median(result.repeats_before) : kept_ ? kept_->ms : 0;
    result.kept = result.ran() && !result.optional && (!kept_ || !is_slower(result.ms, before));
    if (!result.ran()) return;
    if (first_ms_ == 0) first_ms_ = result.ms;
    result.speedup_step = kept_ ? before / result.ms : 1;
    result.speedup_total = first_ms_ / result.ms;
  }

  // The last kept rung and this one in turns, so that whatever else runs on the machine slows down both.
  void repeat(PreparedTrial& prepared, RungResult& result) {
    PreparedTrial before = prepare(kept_->config);
    std::vector<double> here{result.ms}, there{kept_->ms};
    for (int i = 0; i < kRepeats; ++i) {
      RungResult kept_again = measure(before), again = measure(prepared);
      if (!kept_again.ran() || !again.ran()) break;  // others have taken the memory
      there.push_back(kept_again.ms);
      here.push_back(again.ms);
      result.least_ms = std::min(result.least_ms, again.least_ms);
      result.most_ms = std::max(result.most_ms, again.most_ms);
    }
    double share = result.ms / median(here);
    result.ms = median(here);
    for (double* rate : {&result.tokens_per_second, &result.model_gflops, &result.mfu, &result.mfu_causal})
      *rate *= share;
    result.repeats = std::move(here);
    result.repeats_before = std::move(there);
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
    for (double* ms : {&result.ms, &result.predicted_ms, &result.least_ms, &result.most_ms}) *ms *= share;
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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::vector<RungResult> run_ladder(const RunConfig& config, const Platform& platform, Backend& backend,
                                   std::span<const Rung> rungs, const LadderOptions& options,
                                   const std::function<void(const RungResult&)>& report) {
  require_one_rank(resolve(config, platform.target));
  Ladder ladder(config, platform, backend, options);
  std::vector<RungResult> results;
  for (const Rung& rung : rungs) {
    if (!ladder.applies(rung)) continue;
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
