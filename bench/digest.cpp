// What the digest of a run's parameters costs (train.digest_every): milliseconds beside a plain read of the same bytes,
// and the step of which that is 0.2%. Arguments: the configuration, as for `tokamak train` (bench_digest --device=cpu
// --model.preset=gpt2-124m). On the CPU times are those of its cores, which other work on the machine does not change
// much.
#include "cli/machine.h"
#include "config/command_line.h"
#include "config/config.h"
#include "config/visit.h"
#include "exec/parameter_digest.h"
#include "graph/builder.h"
#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace tokamak {
namespace {

constexpr int kRuns = 20;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cores_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

// Of the best of some runs.
double milliseconds(bool of_cores, const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    double begin = of_cores ? cores_seconds() : wall_seconds();
    work();
    best = std::min(best, (of_cores ? cores_seconds() : wall_seconds()) - begin);
  }
  return best * 1e3;
}

void make_parameters(TensorStore& store, const RunConfig& config) {
  Graph graph("parameters");
  GraphBuilder g(graph);
  add_parameters(g, model_parameters(config.model));
  store.make(graph);
  for (const std::string& name : store.names()) {
    std::vector<std::byte> values(size_t(num_bytes(store.type(name))), std::byte(1));
    store.write(name, values.data(), int64_t(values.size()));
  }
}

// The same bytes, added up as words.
double plain_read(const TensorStore& store, uint64_t& sum) {
  return milliseconds(true, [&] {
    for (const std::string& name : store.names()) {
      auto* words = static_cast<const uint64_t*>(store.data(name));
      sum = std::accumulate(words, words + num_bytes(store.type(name)) / int64_t(sizeof(uint64_t)), sum);
    }
  });
}

void measure(const RunConfig& config) {
  Machine machine = open_machine(config, CpuRates::kTypical);
  TensorStore store(*machine.backend);
  make_parameters(store, config);
  int64_t bytes = 0;
  for (const std::string& name : store.names()) bytes += num_bytes(store.type(name));
  ParameterDigest digest(store, *machine.backend, nullptr);
  double taken = milliseconds(!machine.is_gpu, [&] { digest.take()->wait(); });
  fmt::print("{} parameters, {:.3f} GB: a digest takes {:.2f} ms ({:.1f} GB/s), 0.2% of a step of {:.0f} ms\n",
             bytes / 4, double(bytes) * 1e-9, taken, double(bytes) * 1e-6 / taken, taken / 0.002);
  if (machine.is_gpu) return;
  uint64_t sum = 0;
  double read = plain_read(store, sum);
  fmt::print("a plain read takes {:.2f} ms ({:.1f} GB/s; {})\n", read, double(bytes) * 1e-6 / read, sum);
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) try {
  tokamak::RunConfig config;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  tokamak::read_options(tokamak::fields_of(config), arguments);
  tokamak::measure(config);
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
