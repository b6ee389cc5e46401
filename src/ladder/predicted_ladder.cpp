#include "ladder/predicted_ladder.h"

#include "base/bytes.h"
#include "compile/compiled_run.h"
#include "config/config.h"
#include "ladder/ladder_report.h"
#include "plan/units.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

constexpr double kNoNews = 1.01;  // by so much a prediction may say that a rung is slower, and it is kept

// `step_tokens`: of the ladder's configuration, whose step `ms` is.
RungResult predict(const Rung& rung, const RunConfig& config, const CompiledRun& run, const Platform& platform,
                   int64_t step_tokens) {
  const CompiledStep& step = run.stages[0];
  RungResult result{.name = std::string(rung.name), .config = config, .precision = step.resolved.compile.precision};
  result.planned_bytes = step.total_bytes();
  result.micro_batches = step.resolved.micro_batches;
  result.step_tokens = step.resolved.phase.step_tokens;
  result.peak = peak_of(platform.target, result.precision);
  result.tokens_per_second = double(result.step_tokens) / run.seconds;
  result.ms = result.predicted_ms = 1e3 * double(step_tokens) / result.tokens_per_second;
  Utilization used = utilization(flops_per_token(config.model), result.tokens_per_second, result.peak.flops);
  result.model_gflops = used.flops * 1e-9;
  result.mfu = used.full;
  result.mfu_causal = used.causal;
  result.optional = rung.optional;
  return result;
}

}  // namespace

std::vector<RungResult> predict_ladder(const RunConfig& config, const Platform& platform, int64_t available_bytes,
                                       std::span<const Rung> rungs,
                                       const std::function<void(const RungResult&)>& report) {
  std::vector<RungResult> results;
  RunConfig base = config;
  double first_ms = 0, kept_ms = 0;
  int64_t arena_bytes = 0;
  for (const Rung& rung : rungs) {
    if (!applies(rung, base, arena_bytes)) continue;
    RunConfig trial = base;
    rung.switch_on(trial, arena_bytes);
    CompiledRun run = compile_run(resolve(trial, platform.target), platform);
    RungResult result = predict(rung, trial, run, platform, config.step_tokens());
    if (available_bytes > 0 && result.planned_bytes > available_bytes)
      result.failure = fmt::format("does not fit (needs {}, has {})", format_bytes(double(result.planned_bytes)),
                                   format_bytes(double(available_bytes)));
    result.kept = result.ran() && !rung.optional && (kept_ms == 0 || result.ms <= kNoNews * kept_ms);
    if (result.ran()) {
      if (first_ms == 0) first_ms = result.ms;
      result.speedup_step = kept_ms > 0 ? kept_ms / result.ms : 1;
      result.speedup_total = first_ms / result.ms;
    }
    // As run_ladder does: what does not fit is no slower for that.
    if (!rung.optional && (result.kept || !result.ran())) base = trial;
    if (result.kept) {
      kept_ms = result.ms;
      arena_bytes = run.stages[0].largest().plan.arena_bytes;
    }
    if (report) report(result);
    results.push_back(std::move(result));
  }
  return results;
}

std::string format_predicted_header() {
  return fmt::format("{:<25} {:>10} {:>8} {:>6} {:>6} {:>6} {:>6} {:>6}", "rung", "predict ms", "tokens/s", "x prev",
                     "x 1st", "MFU", "causal", "plan");
}

std::string format_predicted_rung(const RungResult& r) {
  if (!r.ran()) return fmt::format("{:<25} {:.94}", r.name, r.failure);
  std::string note = rung_note(r);
  return fmt::format("{:<25} {:>10.2f} {:>8.0f} {:>6.2f} {:>6.2f} {:>5.1f}% {:>5.1f}% {:>6.0f}{}", r.name, r.ms,
                     r.tokens_per_second, r.speedup_step, r.speedup_total, 100 * r.mfu, 100 * r.mfu_causal,
                     double(r.planned_bytes) / kMiB, note.empty() ? "" : " " + note);
}

}  // namespace tokamak
