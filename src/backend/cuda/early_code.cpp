// Device code for a GPU that the driver is still beginning.
#include "backend/cuda/context.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels.h"
#include "config/gpus.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace tokamak::cuda {
namespace {

// Of what this process sees the first, as the bus counts. Where CUDA counts otherwise that is another GPU, mostly of
// the same kind.
size_t first_visible_gpu() {
  size_t index = 0;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    std::from_chars(visible, visible + std::strlen(visible), index);
  return index;
}

Architecture architecture_of(const DeviceInfo& device) { return {device.major, device.minor}; }

void begin(Context& context, const Graph& graph, const Node& node) {
  try {
    compile_ahead(context, graph, node);
  } catch (const std::exception&) {
    // It fails again, with the node's name, when the kernel itself is compiled.
  }
}

class CodeWithoutDevice : public CodeAhead {
 public:
  CodeWithoutDevice(const DeviceInfo& device, std::shared_ptr<KernelCompiler> compiler)
      : context_(device, std::move(compiler)) {}
  void compile_ahead(const Graph& graph, const Node& node) override { begin(context_, graph, node); }

 private:
  Context context_;
};

class CodeInCache : public CacheFiller {
 public:
  CodeInCache(const DeviceInfo& device, const std::filesystem::path& cache)
      : context_(device,
                 std::make_shared<KernelCompiler>(0, architecture_of(device), cache, 0, KernelCompiler::Makes::kCode)) {
  }
  void compile_ahead(const Graph& graph, const Node& node) override { begin(context_, graph, node); }
  Progress progress() override {
    auto [added, compiled] = context_.compiler->progress();
    return {added, compiled};
  }
  void finish() override { context_.compiler->require_cached(); }

 private:
  Context context_;
};

}  // namespace

std::optional<GpuConfig> expected_gpu(const std::filesystem::path& folder) {
  std::error_code none;
  std::vector<std::filesystem::path> gpus;  // by their places on the bus
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) gpus.push_back(entry.path());
  std::sort(gpus.begin(), gpus.end());
  size_t index = first_visible_gpu();
  if (index >= gpus.size()) return std::nullopt;
  std::ifstream information(gpus[index] / "information");
  constexpr std::string_view kModel = "Model:";
  for (std::string line; std::getline(information, line);)
    if (line.starts_with(kModel)) {
      std::optional<GpuConfig> gpu = find_gpu(std::string_view(line).substr(kModel.size()));
      return gpu && gpu->has_units() ? gpu : std::nullopt;
    }
  return std::nullopt;
}

EarlyCode begin_code(const GpuConfig& gpu, const std::filesystem::path& cache) {
  DeviceInfo device = nominal_device(gpu);
  open_compiler(architecture_of(device));  // before this thread opens other libraries, for which compilers would wait
  auto compiler = std::make_shared<KernelCompiler>(0, architecture_of(device), cache);
  return {nominal_platform(gpu), std::make_unique<CodeWithoutDevice>(device, compiler), compiler};
}

std::unique_ptr<CacheFiller> fill_cache(const GpuConfig& gpu, const std::filesystem::path& cache) {
  return std::make_unique<CodeInCache>(nominal_device(gpu), cache);
}

}  // namespace tokamak::cuda
