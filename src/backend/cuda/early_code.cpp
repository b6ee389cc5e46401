// Device code for a GPU that the driver is still beginning.
#include "backend/cuda/code_cache.h"
#include "backend/cuda/context.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels.h"
#include "base/error.h"
#include "config/gpus.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace tokamak::cuda {
namespace {

// Of what this process sees the first, as the bus counts; none where it is told otherwise than by a number, which may
// be that it sees none. Where CUDA counts otherwise it is another GPU, mostly of the same kind.
std::optional<size_t> first_visible_gpu() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return 0;
  size_t index = 0;
  bool is_number = std::from_chars(visible, visible + std::strlen(visible), index).ec == std::errc();
  return is_number ? std::optional(index) : std::nullopt;
}

// By their places on the bus.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> entries;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

class CodeWithoutDevice : public EarlyCode {
 public:
  CodeWithoutDevice(const DeviceInfo& device, const std::filesystem::path& cache)
      : context_(device, std::make_shared<KernelCompiler>(0, Architecture{device.major, device.minor}, cache, 0,
                                                          KernelCompiler::Makes::kCode)) {}
  void compile_ahead(const Graph& graph, const Node& node) override { cuda::compile_ahead(context_, graph, node); }
  Progress progress() override {
    auto [added, compiled] = context_.compiler->progress();
    return {added, compiled};
  }
  void finish() override { context_.compiler->finish(); }
  const std::shared_ptr<KernelCompiler>& compiler() const override { return context_.compiler; }

 private:
  Context context_;
};

}  // namespace

std::optional<GpuConfig> expected_gpu(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> gpus = entries_of(folder);
  std::optional<size_t> first = first_visible_gpu();
  if (!first || *first >= gpus.size()) return std::nullopt;
  std::ifstream information(gpus[*first] / "information");
  constexpr std::string_view kModel = "Model:";
  for (std::string line; std::getline(information, line);)
    if (line.starts_with(kModel)) {
      std::optional<GpuConfig> gpu = find_gpu(std::string_view(line).substr(kModel.size()));
      return gpu && gpu->has_units() ? gpu : std::nullopt;
    }
  return std::nullopt;
}

std::unique_ptr<EarlyCode> begin_code(const GpuConfig& gpu, const std::filesystem::path& cache) {
  DeviceInfo device = nominal_device(gpu);
  open_compiler({device.major, device.minor});  // before others open libraries, for which compilers would wait
  return std::make_unique<CodeWithoutDevice>(device, cache);
}

void require_keeping(const std::filesystem::path& cache) {
  constexpr const char *kProbe = "probe", *kText = "kept";
  CodeCache code(cache);
  code.put(kProbe, kText);
  if (code.find(kProbe) != kText)
    user_error(
        "[cache] expected a folder that keeps code, got {}; look at its owner, mode and free space, or name another in "
        "TOKAMAK_CACHE",
        cache.string());
}

}  // namespace tokamak::cuda
