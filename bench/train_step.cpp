// One optimizer step of a GPT-2 on this machine: compile time, memory planned and taken, speed against the machine's
// own matmul rate, and the kernels that take the time. Arguments: the configuration, as for `tokamak train`
// (bench_train_step --train.batch=4 --compile.precision=fp32).
#include "backend/cpu/cpu_backend.h"
#include "base/random.h"
#include "base/system.h"
#include "compile/step_compiler.h"
#include "config/command_line.h"
#include "config/config.h"
#include "config/visit.h"
#include "model/utilization.h"
#include "plan/print_plan.h"
#include "run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Batch random_batch(const RunConfig& config) {
  Batch batch;
  for (int64_t i = 0; i < config.train.batch * config.model.context; ++i) {
    batch.tokens.push_back(int32_t(philox4x32(1, uint64_t(i))[0] % uint64_t(config.model.vocab)));
    batch.targets.push_back(int32_t(philox4x32(2, uint64_t(i))[0] % uint64_t(config.model.vocab)));
  }
  return batch;
}

struct Row {
  double seconds = 0, predicted = 0, flops = 0, bytes = 0;
  int count = 0;
};

void print_kernels(const Plan& plan, const std::vector<double>& seconds, double steps) {
  std::map<std::string, Row> rows;
  double total = 0;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    Row& row = rows[kernel_label(node, 48) + " " + to_string(plan.graph.type(node.outputs[0]))];
    row.seconds += seconds[i] / steps;
    row.predicted += launch.seconds;
    row.flops += launch.cost.flops;
    row.bytes += launch.cost.bytes;
    ++row.count;
    total += seconds[i] / steps;
  }
  std::vector<std::pair<std::string, Row>> order(rows.begin(), rows.end());
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  fmt::print("{:<70} {:>5} {:>9} {:>9} {:>8} {:>7} {:>6}\n", "kernel", "count", "ms", "predicted", "GFLOP/s", "GB/s",
             "share");
  for (size_t i = 0; i < std::min<size_t>(order.size(), 25); ++i) {
    const Row& r = order[i].second;
    fmt::print("{:<70} {:>5} {:>9.2f} {:>9.2f} {:>8.1f} {:>7.1f} {:>5.1f}%\n", order[i].first, r.count, r.seconds * 1e3,
               r.predicted * 1e3, r.flops / r.seconds * 1e-9, r.bytes / r.seconds * 1e-9, 100 * r.seconds / total);
  }
}

void run(RunConfig config, int steps) {
  Platform platform = cpu::measure_platform();
  const Target& target = platform.target;
  auto begin = Clock::now();
  ResolvedRun resolved = resolve(config, target);
  CompiledStep compiled = compile_step(resolved, platform);
  double compile_seconds = seconds_since(begin);
  auto backend = cpu::make_backend();
  begin = Clock::now();
  const Plan& plan = compiled.programs[0].plan;
  for (const Launch& launch : plan.launches) backend->compile(plan.graph, plan.graph.nodes()[size_t(launch.node)]);
  double kernel_seconds = seconds_since(begin);
  int64_t before = resident_bytes();
  begin = Clock::now();
  Session session(resolved, platform, *backend, available_memory());
  double start_seconds = seconds_since(begin);
  session.initialise();
  Batch batch = random_batch(config);
  session.run_step({&batch, 1}, 0, 1e-4);
  int64_t used = resident_bytes() - before;
  std::vector<double> times, kernels;
  for (int i = 0; i < steps; ++i) {
    begin = Clock::now();
    session.program(0).run_timed(kernels);
    times.push_back(seconds_since(begin));
  }
  std::sort(times.begin(), times.end());
  double step = times[times.size() / 2], tokens = double(session.tokens_per_step()) / step;
  Peak peak = peak_of(target, resolved.compile.precision);
  Utilization share = utilization(flops_per_token(config.model), tokens, peak.flops);
  fmt::print("{}: {} threads, {:.0f} GFLOP/s fp32, {:.0f} bf16, {:.1f} GB/s\n", target.name, target.units,
             target.f32_flops * 1e-9, target.bf16_flops * 1e-9, target.memory_bandwidth * 1e-9);
  fmt::print("{} parameters, B={} T={}, {}\n", count_parameters(config.model), config.train.batch, config.model.context,
             precision_name(resolved.compile.precision));
  fmt::print("config to plan {:.3f} s, its kernels {:.3f} s; all of that with the memory {:.3f} s\n", compile_seconds,
             kernel_seconds, start_seconds);
  fmt::print("memory planned {:.1f} MB, taken {:.1f} MB ({:+.2f}%)\n", double(session.compiled().total_bytes()) * 1e-6,
             double(used) * 1e-6, 100.0 * (double(used) / double(session.compiled().total_bytes()) - 1));
  fmt::print(
      "step {:.1f} ms (median of {}), predicted {:.1f} ms; {:.1f} tokens/s; causal MFU {:.1f}% = {:.1f} GFLOP/s of "
      "{}\n\n",
      step * 1e3, steps, session.compiled().seconds() * 1e3, tokens, 100 * share.causal,
      share.causal * peak.flops * 1e-9, peak.name);
  print_kernels(plan, kernels, steps);
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) try {
  tokamak::RunConfig config;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  tokamak::read_options(tokamak::fields_of(config), arguments);
  tokamak::run(config, 3);
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
