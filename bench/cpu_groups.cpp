// Fused groups on tensors far larger than the cache, against the machine's memory bandwidth: a norm or a pointwise
// group should cost no more than reading its inputs and writing its outputs.
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/measure.h"
#include "exec/program.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/pass.h"

#include <fmt/format.h>

#include <functional>

namespace tokamak {
namespace {

constexpr int64_t kRows = 32768, kCols = 768;  // 96 MiB a tensor

using Build = std::function<ValueIds(GraphBuilder&, std::span<const ValueId> inputs)>;

struct Case {
  const char* name;
  int inputs;
  Build build;
};

ValueIds norm(GraphBuilder& g, ValueId x) {
  ValueId gain = g.parameter("gain", {DType::kF32, {kCols}}), bias = g.parameter("bias", {DType::kF32, {kCols}});
  return {layer_norm(g, x, gain, bias, 1e-5)};
}

std::vector<Case> cases() {
  return {
      {"add", 2, [](GraphBuilder& g, auto in) { return std::vector{add(g, in[0], in[1])}; }},
      {"gelu", 1, [](GraphBuilder& g, auto in) { return std::vector{gelu(g, in[0])}; }},
      {"residual + add + scale", 3,
       [](GraphBuilder& g, auto in) {
         return std::vector{mul(g, add(g, add(g, in[0], in[1]), in[2]), constant(g, 0.5))};
       }},
      {"layer_norm", 1, [](GraphBuilder& g, auto in) { return norm(g, in[0]); }},
      {"residual + layer_norm", 2,
       [](GraphBuilder& g, auto in) {
         ValueId x = add(g, in[0], in[1]);
         ValueIds out = norm(g, x);
         out.push_back(x);
         return out;
       }},
      {"softmax", 1, [](GraphBuilder& g, auto in) { return std::vector{softmax(g, in[0])}; }},
      {"bias gradient", 1, [](GraphBuilder& g, auto in) { return std::vector{reduce_sum(g, in[0], {0}, false)}; }},
  };
}

void measure(const Case& c, const Platform& platform, Backend& backend) {
  Graph graph(c.name);
  GraphBuilder g(graph);
  ValueIds inputs;
  for (int i = 0; i < c.inputs; ++i) inputs.push_back(g.input(fmt::format("x{}", i), {DType::kF32, {kRows, kCols}}));
  auto outputs = c.build(g, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) graph.add_result(fmt::format("y{}", i), outputs[i]);
  run_passes(graph, PassStage::kStep, {platform, {}});
  TensorStore store(backend);
  Program program(make_plan(std::move(graph), platform), backend, store);
  double bytes = 0;
  for (const Launch& launch : program.plan().launches) bytes += launch.cost.bytes;
  double seconds = cpu::best_seconds(0.3, [&] { program.run(); });
  fmt::print("{:<26} {:>8} {:>9.2f} {:>8.1f} {:>7.0f}%\n", c.name, program.plan().launches.size(), seconds * 1e3,
             bytes / seconds * 1e-9, 100 * bytes / seconds / platform.target.memory_bandwidth);
}

}  // namespace
}  // namespace tokamak

int main() {
  tokamak::Platform platform = tokamak::cpu::measure_platform();
  auto backend = tokamak::cpu::make_backend();
  fmt::print("{}: memory {:.1f} GB/s (a = b + s * c)\n", platform.target.name, platform.target.memory_bandwidth * 1e-9);
  fmt::print("{:<26} {:>8} {:>9} {:>8} {:>8}\n", "group, 32768 x 768", "kernels", "ms", "GB/s", "of memory");
  for (const auto& c : tokamak::cases()) tokamak::measure(c, platform, *backend);
}
