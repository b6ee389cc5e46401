// What backend/cuda/cuda_backend.h is in a program built without CUDA.
#include "backend/cuda/cuda_backend.h"
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
DeviceInfo describe_device(int) { fail(); }
std::filesystem::path default_cache() { return {}; }
std::string generated_source(const Node&) { fail(); }
std::unique_ptr<Backend> make_backend(int, const std::filesystem::path&) { fail(); }
Platform measure_platform(Backend&, int) { fail(); }
Platform nominal_platform() { fail(); }

}  // namespace tokamak::cuda
