// Text of a model with random weights: milliseconds a step and tokens a second, with what reading the weights costs
// beside them; or, with --kernels, where a step's time goes. Other arguments: the configuration, as for `tokamak train`
// (bench_generate --device=cuda --model.preset=gpt2-124m --rows=8).
#include "cli/machine.h"
#include "config/command_line.h"
#include "config/config.h"
#include "config/visit.h"
#include "graph/builder.h"
#include "model/model.h"
#include "plan/print_plan.h"
#include "run/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct BenchOptions {
  int64_t rows = 1, tokens = 512, prompt = 16;
  bool kernels = false;
  RunConfig run;
};

void visit(FieldList& v, BenchOptions& c) {
  v("rows", c.rows, "texts side by side", at_least(1));
  v("tokens", c.tokens, "of each text", at_least(1));
  v("prompt", c.prompt, "tokens of each prompt", at_least(1));
  v("kernels", c.kernels, "times single kernels instead");
  v.config(c.run);
}

// Parameters as training begins with them.
void fill(TensorStore& store, const RunConfig& config) {
  std::vector<ParameterInfo> parameters = model_parameters(config.model);
  Graph graph("parameters");
  GraphBuilder g(graph);
  add_parameters(g, parameters);
  store.make(graph);
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::vector<float> values = init_parameter(parameters[i], int64_t(i), 1);
    store.write(parameters[i].name, values.data(), int64_t(values.size()) * 4);
  }
}

void time_kernels(Program& step) {
  constexpr int kRuns = 20;
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) step.run_timed(seconds);
  const Plan& plan = step.plan();
  std::map<std::string, std::pair<double, int>> rows;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Node& node = plan.graph.nodes()[size_t(plan.launches[i].node)];
    auto& [sum, count] = rows[kernel_label(node, 48) + " " + to_string(plan.graph.type(node.outputs[0]))];
    sum += seconds[i] / kRuns;
    ++count;
  }
  for (const auto& [name, row] : rows)
    fmt::print("{:<70} {:>5} x {:>8.2f} us\n", name, row.second, row.first / row.second * 1e6);
}

void time_text(Generator& generator, const BenchOptions& options, int64_t weight_bytes) {
  std::vector<GenerationRow> texts(size_t(options.rows));
  for (size_t r = 0; r < texts.size(); ++r) texts[r] = {std::vector<int32_t>(size_t(options.prompt), 1), int64_t(r)};
  for (SamplingOptions sampling : {SamplingOptions{.temperature = 0}, {.temperature = 0.8, .top_k = 50}}) {
    auto prompt_seconds = [&](int64_t tokens) {
      auto begin = Clock::now();
      generator.generate(texts, tokens, sampling);
      return seconds_since(begin);
    };
    prompt_seconds(4);
    double first = prompt_seconds(1), seconds = (prompt_seconds(options.tokens + 1) - first) / double(options.tokens);
    fmt::print("{} rows, temperature {}: {:.4f} ms a step, {:.0f} tokens/s; weights at {:.0f} GB/s; prompt {:.2f} ms\n",
               options.rows, sampling.temperature, seconds * 1e3, double(options.rows) / seconds,
               double(weight_bytes) / seconds * 1e-9, first * 1e3);
  }
}

void run(const BenchOptions& options) {
  Machine machine = open_machine(options.run);
  fmt::print("{}\n", describe(machine));
  TensorStore trained(*machine.backend);
  fill(trained, options.run);
  auto begin = Clock::now();
  Generator generator(resolve(options.run, machine.platform.target), machine.platform, *machine.backend, options.rows,
                      &trained);
  generator.take_weights();
  machine.backend->synchronize();
  fmt::print("ready after {:.2f} s\n", seconds_since(begin));
  const Graph& graph = generator.decode().plan().graph;
  int64_t weight_bytes = 0;
  for (const Argument& a : graph.arguments())
    if (is_parameter(a.spec.role)) weight_bytes += num_bytes(graph.type(a.value));
  options.kernels ? time_kernels(generator.decode()) : time_text(generator, options, weight_bytes);
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) try {
  tokamak::BenchOptions options;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  tokamak::read_options(tokamak::fields_of(options), arguments);
  tokamak::run(options);
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
