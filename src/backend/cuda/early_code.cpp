// Device code for a GPU that the driver is still beginning.
#include "backend/cuda/context.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/libraries/nvml.h"
#include "config/gpus.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace tokamak::cuda {
namespace {

// Of what this process sees the first, as NVML counts. Where CUDA counts otherwise that is another GPU, mostly of the
// same kind.
unsigned first_visible_gpu() {
  unsigned index = 0;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    std::from_chars(visible, visible + std::strlen(visible), index);
  return index;
}

class CodeWithoutDevice : public CodeAhead {
 public:
  CodeWithoutDevice(const DeviceInfo& device, std::shared_ptr<KernelCompiler> compiler)
      : context_(device, std::move(compiler)) {}

  void compile_ahead(const Graph& graph, const Node& node) override {
    try {
      compile_without_device(context_, graph, node);
    } catch (const std::exception&) {
      // It fails again, with the node's name, when the kernel itself is compiled.
    }
  }

 private:
  Context context_;
};

}  // namespace

std::optional<GpuConfig> expected_gpu() {
  std::unique_ptr<Nvml> nvml = Nvml::open();
  nvmlDevice_st* device = nullptr;
  char name[128] = {};
  if (!nvml || nvml->find<&nvmlDeviceGetHandleByIndex_v2>("nvmlDeviceGetHandleByIndex_v2")(first_visible_gpu(),
                                                                                           &device) != kNvmlOk)
    return std::nullopt;
  if (nvml->find<&nvmlDeviceGetName>("nvmlDeviceGetName")(device, name, sizeof name) != kNvmlOk) return std::nullopt;
  return find_gpu(name);
}

EarlyCode begin_code(const GpuConfig& gpu, const std::filesystem::path& cache) {
  DeviceInfo device = nominal_device(gpu);
  auto compiler = std::make_shared<KernelCompiler>(0, Architecture{device.major, device.minor}, cache);
  return {nominal_platform(gpu), std::make_unique<CodeWithoutDevice>(device, compiler), compiler};
}

}  // namespace tokamak::cuda
