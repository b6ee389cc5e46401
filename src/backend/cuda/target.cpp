// What a GPU can do: rates of its units from its compute capability, bandwidth as measured.
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device.h"
#include "backend/cuda/kernels.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

// Dense floating-point operations per clock of one multiprocessor, from NVIDIA's architecture white papers.
struct Rates {
  double f32, bf16;
};
Rates rates_of(int major, int minor) {
  if (major == 8 && minor == 0) return {128, 2048};  // A100
  if (major == 9) return {256, 4096};                // H100, H200
  if (major == 10) return {256, 8192};               // B200
  return {256, 512};                                 // workstations and consumers, fp32 accumulation
}

// Shares of those that large kernels reach.
constexpr double kMatmulShare = 0.7;
constexpr double kAttentionShare = 0.42;  // forward and backward together, cuDNN
constexpr double kPointwiseShare = 0.25;  // a function of a few instructions
constexpr double kSustainedShare = 0.95;  // of a matmul alone, in a step on an H200 at its power limit of 700 W
constexpr double kGroupShare = 0.93;      // of the bandwidth of a plain copy, what the kernels of groups reach

class CudaKernels : public KernelSet {
 public:
  explicit CudaKernels(const DeviceInfo& info) : info_(info) {}
  bool takes_matmul(const Graph& graph, const Node& group) const override {
    return cuda::takes_matmul(info_, graph, group);
  }
  bool attention_sums(const Graph& graph, const Node& node) const override {
    return attention_grad_gives_sums(info_, graph, node);
  }
  bool has_kernel(const Graph& graph, const Node& node) const override { return cuda::has_kernel(info_, graph, node); }
  int64_t scratch_bytes(const Graph& graph, const Node& node) const override {
    return cuda::scratch_bytes(info_, graph, node);
  }

 private:
  DeviceInfo info_;
};

Target target_of(const DeviceInfo& info, double clock_hertz, double copy_bandwidth) {
  Rates rates = rates_of(info.major, info.minor);
  double clocks = clock_hertz * info.multiprocessors;
  Target target;
  target.name = info.name;
  target.units = info.multiprocessors;
  target.f32_flops = rates.f32 * clocks * kMatmulShare;
  target.bf16_flops = rates.bf16 * clocks * kMatmulShare;
  target.tf32_flops = target.bf16_flops / 2;
  target.attention_flops = rates.bf16 * clocks * kAttentionShare;
  target.pointwise_flops = rates.f32 * clocks * kPointwiseShare;
  target.memory_bandwidth = copy_bandwidth * kGroupShare;
  target.cache_bytes = double(info.l2_bytes) / 2;  // H100's L2 is two halves, each of which may hold the same line
  target.launch_seconds = 2e-6;
  // As NCCL's all-reduce was measured among four H200s over NVLink; PCIe is slower.
  target.link_bandwidth = 349e9;
  target.link_seconds = 30e-6;
  target.sustained_share = kSustainedShare;
  target.chunked_classifier = true;
  target.matmul_accumulate = target.matmul_argument = true;
  target.matmul_operand = target.matmul_operand_sums = target.matmul_prologue = true;
  target.row_column_groups = true;
  target.streams = 2;
  return target;
}

Platform platform_of(const DeviceInfo& info, double clock_hertz, double copy_bandwidth) {
  return {target_of(info, clock_hertz, copy_bandwidth), std::make_shared<CudaKernels>(info)};
}

double measure_copy_bandwidth(Backend& backend) {
  constexpr int64_t kBytes = int64_t(512) << 20;
  constexpr int kRuns = 3;
  auto from = backend.allocate(kBytes), to = backend.allocate(kBytes);
  double best = 1e30;
  for (int i = 0; i < kRuns; ++i)
    best = std::min(best, backend.time([&] { backend.copy(to->data(), from->data(), kBytes); }));
  return 2.0 * double(kBytes) / best;
}

double clock_hertz(int ordinal) {
  int kilohertz = 0;
  TOKAMAK_CUDA(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, ordinal));
  return kilohertz * 1e3;
}

}  // namespace

Platform nominal_platform() {
  DeviceInfo h200{.name = "NVIDIA H200 (nominal)", .major = 9, .minor = 0, .multiprocessors = 132};
  h200.l2_bytes = int64_t(60) << 20;
  h200.shared_bytes = 227 << 10;
  return platform_of(h200, 1.83e9, 4.27e12);
}

Platform measure_platform(Backend& backend, int ordinal) {
  return platform_of(describe_device(ordinal), clock_hertz(ordinal), measure_copy_bandwidth(backend));
}

}  // namespace tokamak::cuda
