// What backend/cuda/cuda_backend.h and nccl.h are in a program built without CUDA.
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/nccl.h"
#include "base/error.h"

namespace tokamak::cuda {
namespace {

[[noreturn]] void fail() {
  user_error(
      "[cuda] expected a program built with CUDA, this one was not; install the CUDA toolkit (12.4 or newer) and build "
      "again, or use --device=cpu");
}

}  // namespace

bool is_built() { return false; }
std::string library_versions() { return "not built in; install the CUDA toolkit (12.4 or newer) and build again"; }
int device_count() { return 0; }
void hide_other_devices() {}
void begin_device(int) {}
std::string device_failure() { return {}; }
DeviceInfo describe_device(int) { fail(); }
std::filesystem::path default_cache() { return {}; }
std::string generated_source(const Node&) { fail(); }
std::unique_ptr<Backend> make_backend(int, const std::filesystem::path&, const std::shared_ptr<KernelCompiler>&) {
  fail();
}
std::optional<GpuConfig> expected_gpu(const std::filesystem::path&) { return std::nullopt; }
std::unique_ptr<EarlyCode> begin_code(const GpuConfig&, const std::filesystem::path&) { fail(); }
void require_keeping(const std::filesystem::path&) { fail(); }
Platform measure_platform(Backend&, int) { fail(); }
DeviceInfo nominal_device(const GpuConfig&) { fail(); }
Platform nominal_platform(const GpuConfig&) { fail(); }
Platform nominal_platform() { fail(); }
bool nccl_is_built() { return false; }
bool nccl_opens() { return false; }
std::unique_ptr<Communicator> make_nccl_world(StoreClient&, const NcclOptions&) { fail(); }
std::string tree_sum_source(DType, std::span<const TreePiece>) { fail(); }

}  // namespace tokamak::cuda
