#include "train/ladder.h"

#include "base/error.h"
#include "config/config.h"
#include "exec/task_queue.h"
#include "plan/print_plan.h"
#include "plan/units.h"
#include "train/random_batch.h"
#include "train/session.h"
#include "train/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;

// A rung that is slower by less than this may be noise, and is no reason to go on without it.
constexpr double kHostNoise = 1.1, kDeviceNoise = 1.03;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::vector<Batch> random_batches(const RunConfig& config, int64_t count) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < count; ++i) batches.push_back(random_batch(config, uint64_t(i)));
  return batches;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct StepTimes {
  double first_ms = 0;  // since `begin`
  double ms = 0;
};

// One rung's session and what it is fed.
class Trial {
 public:
  Trial(const RunConfig& config, const Platform& platform, Backend& backend, const LadderOptions& options)
      : backend_(backend), options_(options), session_(config, platform, backend),
        batches_(random_batches(config, session_.micro_batches())) {}

  Session& session() { return session_; }

  /// After so many seconds of steps.
  StepTimes time(Clock::time_point begin, double load_seconds) {
    return options_.device_clock ? time_by_device(begin, load_seconds) : time_on_queue(begin, load_seconds);
  }

 private:
  void run_step(int64_t step) { session_.run_step(batches_, step, session_.config().optimizer.lr); }

  // The next step is under way before the one before it is over, as in training.
  void load(double seconds) {
    std::optional<PendingStep> before;
    for (auto begin = Clock::now(); ms_since(begin) < 1e3 * seconds;) {
      PendingStep next = session_.submit_step(batches_, options_.warmup, session_.config().optimizer.lr);
      if (before) before->wait();
      before = std::move(next);
    }
    if (before) before->wait();
  }

  StepTimes time_by_device(Clock::time_point begin, double load_seconds) {
    StepTimes times;
    session_.initialise();
    run_step(0);
    times.first_ms = ms_since(begin);
    for (int64_t i = 1; i < options_.warmup; ++i) run_step(i);
    load(load_seconds);
    std::vector<double> steps;
    for (int64_t i = 0; i < options_.steps; ++i) {
      std::optional<PendingStep> pending;  // the step's loss stays on the device until the clock was read
      steps.push_back(1e3 * backend_.time([&] {
        pending = session_.submit_step(batches_, options_.warmup + i, session_.config().optimizer.lr);
      }));
    }
    times.ms = median(steps);
    return times;
  }

  // All of it on one thread, as in training; see StepQueue::run.
  StepTimes time_on_queue(Clock::time_point begin, double load_seconds) {
    StepTimes times;
    TaskQueue queue;
    queue.run([this] {
      backend_.use_in_this_thread();
      session_.initialise();
      run_step(0);
    });
    times.first_ms = ms_since(begin);
    for (int64_t i = 1; i < options_.warmup; ++i) queue.submit([this, i] { run_step(i); });
    queue.run([&] { load(load_seconds); });
    times.ms = time_steps(queue);
    return times;
  }

  // Milliseconds of a step. Without waiting in between there are no single steps to time: the whole queue is.
  double time_steps(TaskQueue& queue) {
    bool async = session_.config().compile.async;
    std::vector<double> times;
    auto begin = Clock::now();
    for (int64_t i = 0; i < options_.steps; ++i) {
      auto step_begin = Clock::now();
      queue.submit([this, i] { run_step(options_.warmup + i); });
      if (async) continue;
      queue.wait();
      times.push_back(ms_since(step_begin));
    }
    queue.wait();
    return async ? ms_since(begin) / double(options_.steps) : median(times);
  }

  Backend& backend_;
  LadderOptions options_;
  Session session_;
  std::vector<Batch> batches_;
};

// Everything by which a rung may differ from another: where it is equal, so is the run.
std::string fingerprint(const CompiledStep& step) {
  const CompileConfig& c = step.config.compile;
  std::string text =
      fmt::format("{} async {} cuda_graph {} deterministic {} schedule {}\n", precision_name(c.precision), c.async,
                  c.cuda_graph, c.deterministic, print_schedule(step));
  for (const CompiledGraph& program : step.programs) text += print_plan(program.plan);
  return text;
}

// A rung's run, compiled but not begun.
struct Prepared {
  RunConfig config;
  Clock::time_point begin = Clock::now();
  Platform platform;
  CompiledStep compiled;
  std::string fingerprint;
  std::string failure;
};

class Ladder {
 public:
  Ladder(const RunConfig& config, const Platform& platform, Backend& backend, const LadderOptions& options)
      : config_(config), step_tokens_(config.train.batch * config.model.context * count_micro_batches(config)),
        platform_(platform), backend_(backend), options_(options) {}

  RungResult climb(const Rung& rung) {
    RunConfig trial = config_;
    rung.switch_on(trial, kept_arena_bytes_);
    Prepared prepared = prepare(trial);
    bool changed = !kept_ || prepared.fingerprint != kept_print_;
    RungResult result = changed ? measure(prepared) : *kept_;
    // A loss is measured once more before it is believed: something else may have run on the machine meanwhile.
    if (result.ran() && !rung.optional && kept_ && result.ms > slowest_kept_ms()) {
      prepared.begin = Clock::now();
      RungResult again = measure(prepared);
      if (again.ran() && again.ms < result.ms) result = again;
    }
    result.name = rung.name;
    result.optional = rung.optional;
    result.changed = changed;
    compare(result);
    if (rung.optional) return result;
    // What does not fit is no slower for that: the rungs after it build on it, and may need less memory.
    if (result.kept || !result.ran()) config_ = trial;
    if (!result.kept) return result;
    kept_ = result;
    kept_print_ = std::move(prepared.fingerprint);
    kept_arena_bytes_ = prepared.compiled.largest().plan.arena_bytes;
    return result;
  }

  // What has been kept, once more when the device is warm and at its limit of power.
  RungResult sustain() {
    RungResult result = measure(prepare(config_), options_.load_seconds);
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

  // As a training run begins; kernels that were measured once are known to the rungs after it.
  Prepared prepare(const RunConfig& config) {
    Prepared prepared;
    prepared.config = config;
    prepared.platform = platform_;
    prepared.compiled = compile_step(config, platform_);
    int64_t free = backend_.free_bytes(), needed = prepared.compiled.total_bytes();
    if (free > 0 && needed > free) {
      prepared.failure =
          fmt::format("does not fit (needs {}, {} are free)", format_bytes(double(needed)), format_bytes(double(free)));
    } else {
      prepared.platform = tune(config, platform_, backend_);
      platform_.tuning.measured_seconds = prepared.platform.tuning.measured_seconds;
      prepared.compiled = compile_step(config, prepared.platform);
    }
    prepared.fingerprint = fingerprint(prepared.compiled);
    return prepared;
  }

  RungResult measure(const Prepared& prepared, double load_seconds = 0) {
    const CompiledStep& compiled = prepared.compiled;
    RungResult result;
    result.precision = compiled.config.compile.precision;
    result.planned_bytes = compiled.total_bytes();
    result.micro_batches = compiled.micro_batches();
    result.peak = peak_of(platform_.target, result.precision);
    result.failure = prepared.failure;
    if (!result.ran()) return result;
    try {
      run(prepared, load_seconds, result);
    } catch (const UserError& error) {  // the plan fits, but not with what the kernels need beside it
      result.failure = error.what();
    }
    return result;
  }

  void run(const Prepared& prepared, double load_seconds, RungResult& result) {
    int64_t before = backend_.used_bytes();
    Trial trial(prepared.config, prepared.platform, backend_, options_);
    StepTimes times = trial.time(prepared.begin, load_seconds);
    const Session& session = trial.session();
    result.by_reference = list_kernels(session.reference_nodes());
    double share = double(step_tokens_) / double(session.tokens_per_step());
    result.first_step_ms = times.first_ms;
    result.ms = times.ms * share;
    result.predicted_ms = session.compiled().seconds() * 1e3 * share;
    result.tokens_per_second = double(session.tokens_per_step()) / times.ms * 1e3;
    result.gflops = session.compiled().flops() / times.ms * 1e-6;
    FlopsPerToken flops = flops_per_token(prepared.config.model);
    // A rate that was measured while something else ran can be less than what the step reaches.
    result.peak.flops = std::max(result.peak.flops, result.tokens_per_second * flops.full);
    result.mfu = result.tokens_per_second * flops.full / result.peak.flops;
    result.mfu_causal = result.tokens_per_second * flops.causal / result.peak.flops;
    // On the host what others gave back meanwhile counts too, and can be more.
    result.used_bytes = std::max<int64_t>(backend_.used_bytes() - before, 0);
    result.planned_bytes += session.workspace_bytes() - session.compiled().scratch_bytes();  // as it was chosen
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
  require_one_rank(config);
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
