// What a GPU can do: its rates (graph/gpu_target.h), with bandwidth as measured, and which kernels it has.
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device.h"
#include "backend/cuda/kernels.h"
#include "config/cluster.h"
#include "config/gpus.h"
#include "graph/gpu_target.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

// Whose GPUs have the links that any are taken to have.
constexpr const char* kNominalCluster = "h200";

class CudaKernels : public KernelSet {
 public:
  explicit CudaKernels(const DeviceInfo& info) : info_(info) {}
  bool takes_matmul(const Graph& graph, const Node& group) const override {
    return cuda::takes_matmul(info_, graph, group);
  }
  bool attention_extras(const Graph& graph, const Node& node) const override {
    return attention_has_extras(info_, graph, node);
  }
  bool has_kernel(const Graph& graph, const Node& node) const override { return cuda::has_kernel(info_, graph, node); }
  int64_t scratch_bytes(const Graph& graph, const Node& node) const override {
    return cuda::scratch_bytes(info_, graph, node);
  }

 private:
  DeviceInfo info_;
};

Platform platform_of(const DeviceInfo& info, double clock_hertz, double copy_bandwidth) {
  Target target = gpu_target(
      {info.name, info.major, info.minor, info.multiprocessors, clock_hertz, copy_bandwidth, double(info.l2_bytes)});
  LinkConfig link = read_cluster(kNominalCluster).within;  // until ranks measure theirs
  target.link_bandwidth = link.bandwidth.value;
  target.link_seconds = link.latency.value;
  return {std::move(target), std::make_shared<CudaKernels>(info)};
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

DeviceInfo nominal_device(const GpuConfig& gpu) {
  GpuRates rates = gpu_rates(gpu);
  DeviceInfo info{.name = rates.name + " (nominal)",
                  .major = rates.major,
                  .minor = rates.minor,
                  .multiprocessors = rates.multiprocessors};
  info.l2_bytes = int64_t(gpu.l2_bytes.value);
  info.shared_bytes = int64_t(gpu.shared_bytes.value);
  return info;
}

Platform nominal_platform(const GpuConfig& gpu) {
  GpuRates rates = gpu_rates(gpu);
  return platform_of(nominal_device(gpu), rates.clock, rates.copy_bandwidth);
}

Platform nominal_platform() { return nominal_platform(gpu_model(kNominalGpu)); }

Platform measure_platform(Backend& backend, int ordinal) {
  return platform_of(describe_device(ordinal), clock_hertz(ordinal), measure_copy_bandwidth(backend));
}

}  // namespace tokamak::cuda
