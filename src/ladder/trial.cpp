#include "ladder/trial.h"

#include "base/error.h"
#include "compile/float8_table.h"
#include "exec/task_queue.h"
#include "plan/units.h"
#include "run/random_batch.h"
#include "run/rank_decisions.h"
#include "tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::vector<Batch> random_batches(const ResolvedRun& run) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < run.micro_batches; ++i) batches.push_back(random_batch(run, uint64_t(i)));
  return batches;
}

struct StepTimes {
  double first_ms = 0;  // since `begin`
  double ms = 0;        // the median, or where steps do not wait for each other the mean
  double least_ms = 0, most_ms = 0;
  double joules = 0;  // of a step under load

  void set_range(const std::vector<double>& steps) {
    auto [least, most] = std::minmax_element(steps.begin(), steps.end());
    least_ms = *least, most_ms = *most;
  }
};

// One rung's session and what it is fed.
class Trial {
 public:
  Trial(Session session, Backend& backend, const LadderOptions& options)
      : backend_(backend), options_(options), session_(std::move(session)),
        batches_(random_batches(session_.resolved())) {}

  Session& session() { return session_; }

  /// After so many seconds of steps.
  StepTimes time(Clock::time_point begin, double load_seconds) {
    return options_.device_clock ? time_by_device(begin, load_seconds) : time_on_queue(begin, load_seconds);
  }

 private:
  double lr() const { return session_.resolved().asked.optimizer.lr; }
  void run_step(int64_t step) { session_.run_step(batches_, step, lr()); }

  // The next step is under way before the one before it is over, as in training. Returns the joules of a step, which
  // are those of the load's second half, when the device is as warm as it gets; 0 where it does not tell.
  double load(double seconds) {
    std::unique_ptr<DeviceSensors> sensors = seconds > 0 ? backend_.open_sensors() : nullptr;
    submit_steps(seconds / 2);
    double before = sensors ? sensors->read().joules : 0;
    int64_t steps = submit_steps(seconds / 2);
    return sensors && steps > 0 ? (sensors->read().joules - before) / double(steps) : 0;
  }

  // For so long; how many there were, all of which are over.
  int64_t submit_steps(double seconds) {
    std::optional<PendingStep> before;
    int64_t steps = 0;
    for (auto begin = Clock::now(); ms_since(begin) < 1e3 * seconds; ++steps) {
      PendingStep next = session_.submit_step(batches_, options_.warmup, lr());
      if (before) before->wait();
      before = std::move(next);
    }
    if (before) before->wait();
    return steps;
  }

  StepTimes time_by_device(Clock::time_point begin, double load_seconds) {
    StepTimes times;
    session_.initialise();
    run_step(0);
    times.first_ms = ms_since(begin);
    for (int64_t i = 1; i < options_.warmup; ++i) run_step(i);
    times.joules = load(load_seconds);
    std::vector<double> steps;
    for (int64_t i = 0; i < options_.steps; ++i) {
      std::optional<PendingStep> pending;  // the step's loss stays on the device until the clock was read
      steps.push_back(1e3 *
                      backend_.time([&] { pending = session_.submit_step(batches_, options_.warmup + i, lr()); }));
    }
    times.ms = median(steps);
    times.set_range(steps);
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
    queue.run([&] { times.joules = load(load_seconds); });
    time_steps(queue, times);
    return times;
  }

  // Without waiting in between the whole queue is timed; then a step is what lies between the ends of two.
  void time_steps(TaskQueue& queue, StepTimes& times) {
    bool async = session_.resolved().compile.async;
    std::vector<double> steps;
    auto begin = Clock::now(), step_begin = begin;
    for (int64_t i = 0; i < options_.steps; ++i) {
      if (!async) step_begin = Clock::now();
      queue.submit([this, i, &steps, &step_begin] {
        run_step(options_.warmup + i);
        steps.push_back(ms_since(step_begin));
        step_begin = Clock::now();
      });
      if (!async) queue.wait();
    }
    queue.wait();
    times.ms = async ? ms_since(begin) / double(options_.steps) : median(steps);
    times.set_range(steps);
  }

  Backend& backend_;
  LadderOptions options_;
  Session session_;
  std::vector<Batch> batches_;
};

// What the plan alone tells.
RungResult as_planned(const PreparedTrial& prepared) {
  const CompiledStep& compiled = prepared.run.stages[0];
  RungResult result;
  result.config = prepared.resolved.asked;
  result.precision = prepared.resolved.compile.precision;
  result.planned_bytes = compiled.total_bytes();
  result.micro_batches = prepared.resolved.micro_batches;
  result.peak = peak_of(prepared.platform.target, result.precision);
  return result;
}

void fill(RungResult& result, const Session& session, const StepTimes& times) {
  result.step_tokens = session.tokens_per_step();
  result.by_reference = list_kernels(session.reference_nodes());
  result.joules_per_token = times.joules / double(result.step_tokens);
  result.first_step_ms = times.first_ms;
  result.predicted_ms = session.run().seconds * 1e3;
  result.tokens_per_second = double(result.step_tokens) / times.ms * 1e3;
  result.planned_bytes += session.workspace_bytes() - session.compiled().scratch_bytes();  // as it was chosen
}

void add_utilization(RungResult& result, int64_t ranks) {
  Utilization used =
      utilization(flops_per_token(result.config.model), result.tokens_per_second, result.peak.flops * double(ranks));
  result.model_gflops = used.flops * 1e-9;
  result.mfu = used.full;
  result.mfu_causal = used.causal;
}

}  // namespace

PreparedTrial prepare_trial(const ResolvedRun& run, const Platform& platform, Backend& backend,
                            const MeshRanks* ranks) {
  PreparedTrial prepared;
  prepared.resolved = run;
  prepared.platform = platform;
  int64_t free = least_of(ranks, backend.free_bytes());
  if (leads(ranks)) {
    prepared.run = compile_run(run, platform);
    int64_t needed = prepared.run.fullest().total_bytes();
    if (free > 0 && needed > free) {
      prepared.failure =
          fmt::format("does not fit (needs {}, {} are free)", format_bytes(double(needed)), format_bytes(double(free)));
    } else {
      prepared.platform = tune(run, platform, backend);
      prepared.run = compile_run(run, prepared.platform);
    }
  }
  prepared.failure = of_leader(ranks, prepared.failure);
  return prepared;
}

std::unique_ptr<Session> make_session(PreparedTrial& prepared, Backend& backend, const MeshRanks* ranks,
                                      std::string& failure) {
  std::unique_ptr<Session> session;
  // The others wait here until the rank that leads has made its session, which is when kernels are chosen.
  if (!leads(ranks)) await_choices(ranks, prepared.platform.tuning, backend);
  try {
    session = std::make_unique<Session>(prepared.resolved, prepared.platform, backend, 0, ranks);
  } catch (const UserError& error) {  // the plan fits, but not with what the kernels need beside it
    failure = error.what();
  }
  if (ranks && leads(ranks)) give_choices(ranks, prepared.platform.tuning, backend);
  failure = first_of(ranks, failure);
  if (!failure.empty()) session.reset();
  return session;
}

RungResult measure_trial(PreparedTrial& prepared, Backend& backend, const LadderOptions& options, double load_seconds,
                         const MeshRanks* ranks) {
  RungResult result = leads(ranks) ? as_planned(prepared) : RungResult();
  result.failure = prepared.failure;
  if (!result.ran()) return result;
  int64_t before = backend.used_bytes();
  std::unique_ptr<Session> session = make_session(prepared, backend, ranks, result.failure);
  if (!session) return result;
  Trial trial(std::move(*session), backend, options);
  StepTimes times;
  try {
    times = trial.time(prepared.begin, load_seconds);
  } catch (const UserError& error) {
    if (ranks) throw;  // the others are in the middle of a step
    result.failure = error.what();
    return result;
  }
  result.ms = times.ms;
  result.least_ms = times.least_ms, result.most_ms = times.most_ms;
  if (!leads(ranks)) return result;
  fill(result, trial.session(), times);
  result.products = float8_table(prepared.resolved, prepared.platform);  // behind what is timed, as it compiles again
  add_utilization(result, ranks ? ranks->mesh().num_ranks() : 1);
  // On the host what others gave back meanwhile counts too, and can be more.
  result.used_bytes = std::max<int64_t>(backend.used_bytes() - before, 0);
  return result;
}

}  // namespace tokamak
