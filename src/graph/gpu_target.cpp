#include "graph/gpu_target.h"

#include <cmath>

namespace tokamak {
namespace {

// Dense floating-point operations per clock of one multiprocessor, from NVIDIA's architecture white papers.
struct ClockRates {
  double f32, bf16;
};
ClockRates rates_of(int major, int minor) {
  if (major == 8 && minor == 0) return {128, 2048};  // A100
  if (major == 9) return {256, 4096};                // H100, H200
  if (major == 10) return {256, 8192};               // B200
  return {256, 512};                                 // workstations and consumers, fp32 accumulation
}

// Shares of those that large kernels reach.
constexpr double kMatmulShare = 0.725;  // of GPT-2 124M on an H200, bench/results/2026-11-21-h200-kernels-b64.txt
// Libraries reach more of an A100: at best 85.9% where 80.1% of an H100 (stas00/ml-engineering, "Maximum Achievable
// Matmul FLOPS", CUDA 12.1).
constexpr double kMatmulShareOfA100 = kMatmulShare * 0.859 / 0.801;
constexpr double kAttentionShare = 0.48;  // forward and backward together, own kernels on an H200 at T=131072
constexpr double kPointwiseShare = 0.25;  // a function of a few instructions
// Of a few runs of a matmul alone, in steps of a long run on an H200 at its power limit of 700 W
// (bench/results/2026-11-30-h200-x2-predictions.txt).
constexpr double kSustainedShare = 0.90;
constexpr double kAwakeLinksShare =
    0.984;                            // of that, while GPUs copy between them (2026-11-25-h100-x2-links.txt there)
constexpr double kCopyShare = 0.89;   // of the bandwidth in a datasheet, what a plain copy reaches on an H200
constexpr double kGroupShare = 0.93;  // of that, what the kernels of groups reach

// Tiles are of 256 x 64 and 128 x 128; the rest is what a row of tiles begins and ends with, beside which nothing runs.
// With 480 attention has 291, 383, 415 and 426 TFLOP/s at T = 1024, 4096, 16384 and 131072 on an H200; measured are
// 290, 360, 410 and 439 (docs/plan.md#predicted-and-measured).
constexpr double kAttentionTile = 480;

// What products of a training step gain in FP8 at an H100's power limit, of the 2 that its units have: 1.6 to 1.95.
constexpr double kFloat8Gain = 1.7;

// Random numbers of dropout, of a multiprocessor in a clock. In attention each is 4.5 of a thread's instructions, so
// alone they would be 28; beside what a kernel does they are 12, as what dropout adds to steps on an H200 says.
constexpr double kDraws = 12;

// Of the clock at which a GPU has the rates of its datasheet, what its power leaves it under load: with this, steps of
// GPT-2 124M and 1558M on an H200 are predicted to take what they took (docs/plan.md#predicted-and-measured).
constexpr double kClockUnderLoad = 0.9;

}  // namespace

double load_clock(const GpuConfig& gpu) { return gpu.load_clock.is_known() ? gpu.load_clock.value : kClockUnderLoad; }

GpuRates gpu_rates(const GpuConfig& gpu) {
  GpuRates rates{.name = "NVIDIA " + gpu.name,
                 .major = int(gpu.compute_capability.value),
                 .minor = int(std::lround(gpu.compute_capability.value * 10)) % 10,
                 .multiprocessors = int(gpu.multiprocessors.value),
                 .copy_bandwidth = gpu.memory_bandwidth.value * kCopyShare,
                 .l2_bytes = gpu.l2_bytes.value};
  double operations = rates_of(rates.major, rates.minor).bf16 * rates.multiprocessors;
  rates.clock = load_clock(gpu) * gpu.half_flops.value / operations;
  return rates;
}

Target with_awake_links(Target target) {
  if (target.sustained_share < 1) target.sustained_share *= kAwakeLinksShare;
  return target;
}

double described_bandwidth(const Target& target) { return target.memory_bandwidth / (kGroupShare * kCopyShare); }

Target gpu_target(const GpuRates& gpu) {
  ClockRates rates = rates_of(gpu.major, gpu.minor);
  double clocks = gpu.clock * gpu.multiprocessors;
  Target target;
  target.name = gpu.name;
  target.units = gpu.multiprocessors;
  double matmul_share = gpu.major == 8 && gpu.minor == 0 ? kMatmulShareOfA100 : kMatmulShare;
  target.f32_flops = rates.f32 * clocks * matmul_share;
  target.bf16_flops = rates.bf16 * clocks * matmul_share;
  target.tf32_flops = target.bf16_flops / 2;
  if (gpu.major == 9) target.fp8_flops = target.bf16_flops * kFloat8Gain;
  target.attention_flops = rates.bf16 * clocks * kAttentionShare;
  target.attention_tile = kAttentionTile;
  target.draw_rate = kDraws * clocks;
  target.pointwise_flops = rates.f32 * clocks * kPointwiseShare;
  target.memory_bandwidth = gpu.copy_bandwidth * kGroupShare;
  target.cache_bytes = gpu.l2_bytes / 2;  // H100's L2 is two halves, each of which may hold the same line
  target.launch_seconds = 2e-6;
  // By mail over NVLink: two H100s, of 50 to 200 MiB (bench/gpu_ranks.cpp). A product beside it took 1.03 times as long
  // there, but the kernels of a step lost about a third of the time that mail took. Beside NCCL's all_reduce matmuls
  // took 1.27 times as long on two H200s.
  target.gather_share = 0.9;
  target.link_units = 0.21;
  target.sustained_share = kSustainedShare;
  target.chunked_classifier = true;
  target.matmul_accumulate = target.matmul_argument = true;
  target.matmul_operand = target.matmul_operand_sums = target.matmul_prologue = true;
  target.row_column_groups = true;
  target.streams = 2;
  return target;
}

}  // namespace tokamak
