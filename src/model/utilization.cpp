#include "model/utilization.h"

#include "config/gpus.h"
#include "cost/flop_rate.h"

#include <fmt/format.h>

namespace tokamak {

Peak peak_of(const Target& target, Precision precision) {
  // Most of what FP8 computes is bf16, and a model utilization of another peak compares with nothing.
  std::string_view name = precision_name(precision == Precision::kFp8 ? Precision::kBf16 : precision);
  std::optional<GpuConfig> gpu = find_gpu(target.name);
  if (!gpu) {
    double rate = matmul_rate(target, precision);
    return {rate, fmt::format("{:.3g} TFLOP/s (matmul rate, {})", rate * 1e-12, name)};
  }
  const Figure& peak = precision == Precision::kFp32   ? gpu->fp32_flops
                       : precision == Precision::kTf32 ? gpu->tf32_flops
                                                       : gpu->half_flops;
  return {peak.value, fmt::format("{:.4g} TFLOP/s ({} datasheet, {} dense)", peak.value * 1e-12, gpu->name, name)};
}

std::string Peak::of_ranks(int64_t ranks) const { return ranks > 1 ? fmt::format("{} x {}", ranks, name) : name; }

Utilization utilization(const FlopsPerToken& flops, double tokens_per_second, double peak) {
  double full = flops.full * tokens_per_second, causal = flops.causal * tokens_per_second;
  if (peak <= 0) return {.flops = full};
  return {full, full / peak, causal / peak};
}

}  // namespace tokamak
