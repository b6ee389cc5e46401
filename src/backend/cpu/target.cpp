#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/measure.h"
#include "base/parallel.h"
#include "graph/op_def.h"
#include "ops/pointwise.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tokamak::cpu {
namespace {

// Forward and backward pass together, of the fp32 matmul rate, where it multiplies f32 (bench/cpu_attention.cpp).
constexpr double kAttentionShare = 0.65;

// Elements a second of one op's tile kernel, data in L1, one thread.
double tile_rate(const OpDef& op) {
  constexpr int64_t kElements = 2048, kRuns = 50;
  std::vector<float> a(kElements, 0.5f), b(kElements, 0.25f), out(kElements);
  Node node;
  node.op = &op;
  std::array<TileOperand, 2> operands{TileOperand{a.data(), false, nullptr}, TileOperand{b.data(), false, nullptr}};
  double seconds = best_seconds(2e-3, [&] {
    for (int64_t i = 0; i < kRuns; ++i)
      op.tile(node, {operands.data(), size_t(op.max_inputs)}, 0, kElements, out.data());
  });
  return double(kElements * kRuns) / seconds;
}

class CpuKernels : public KernelSet {
 public:
  explicit CpuKernels(int threads) : threads_(threads) {}
  bool has_kernel(const Graph& graph, const Node& node) const override { return cpu::has_kernel(graph, node); }
  int64_t scratch_bytes(const Graph& graph, const Node& node) const override {
    return cpu::scratch_bytes(graph, node, threads_);
  }

 private:
  int threads_;  // scratch memory follows from them
};

// Products take nothing in: what a library does to them before it stores them has other bits than a kernel of its own.
Platform platform_of(Target target) {
  target.matmul_bias = target.matmul_function = false;
  auto kernels = std::make_shared<CpuKernels>(target.units);
  return {std::move(target), std::move(kernels)};
}

}  // namespace

Platform measure_platform() {
  MachinePeaks peaks = measure_machine();
  Target target;
  target.name = peaks.cpu;
  target.units = peaks.threads;
  target.f32_flops = peaks.f32_flops;
  // Without bf16 matmuls there is no gain to be had; the reference kernels are far slower than this.
  target.bf16_flops = peaks.bf16_flops > 0 ? peaks.bf16_flops : peaks.f32_flops / 10;
  target.memory_bandwidth = peaks.memory_bandwidth;
  if (peaks.cache_bytes > 0) target.cache_bytes = double(peaks.cache_bytes);
  target.attention_flops = std::max(peaks.bf16_attention_flops, kAttentionShare * peaks.f32_flops);
  // A mix of cheap and dear functions, as in norms and GELU.
  target.pointwise_flops = double(num_threads()) * 2 / (1 / tile_rate(op::mul) + 1 / tile_rate(op::exp));
  return platform_of(std::move(target));
}

Platform nominal_platform(int threads) {
  Target target;
  target.name = "two cores with AVX-512 (nominal)";
  target.units = threads;
  target.f32_flops = 250e9;
  target.bf16_flops = 150e9;  // avx512_bf16 without AMX
  target.memory_bandwidth = 25e9;
  target.pointwise_flops = 10e9;
  target.attention_flops = kAttentionShare * target.f32_flops;
  return platform_of(std::move(target));
}

}  // namespace tokamak::cpu
