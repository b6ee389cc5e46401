#include "backend/cuda/check.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cudnn_attention.h"
#include "base/error.h"

#include <cstdlib>

namespace tokamak::cuda {
namespace {

constexpr int kOldestMajor = 8;  // bf16 and asynchronous copies

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

std::string blas_version(size_t number) {
  return fmt::format("cuBLASLt {}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

// As they are loaded: cuDNN uses cuBLASLt and NVRTC as well, and finds those that are open.
std::string list_versions() {
  int driver = 0, runtime = 0, nvrtc_major = 0, nvrtc_minor = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  nvrtcVersion(&nvrtc_major, &nvrtc_minor);
  return fmt::format("driver for CUDA {}, runtime {}, NVRTC {}.{}, {}, {}", version(driver), version(runtime),
                     nvrtc_major, nvrtc_minor, blas_version(cublasLtGetVersion()), cudnn_version());
}

int64_t attribute(cudaDeviceAttr name, int ordinal) {
  int value = 0;
  TOKAMAK_CUDA(cudaDeviceGetAttribute(&value, name, ordinal));
  return value;
}

// Of an environment variable; empty unless it is one, as the XDG base directory specification asks for.
std::filesystem::path absolute_path(const char* variable) {
  const char* value = std::getenv(variable);
  std::filesystem::path path(value ? value : "");
  return path.is_absolute() ? path : std::filesystem::path();
}

}  // namespace

bool is_built() { return true; }

std::string library_versions() {
  return fmt::format("built with toolkit {}, {}; {}", version(CUDART_VERSION), blas_version(CUBLAS_VERSION),
                     cudnn_version());
}

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

void hide_other_devices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string first = visible ? visible : "0";
  ::setenv("CUDA_VISIBLE_DEVICES", first.substr(0, first.find(',')).c_str(), 1);
}

void begin_device(int ordinal) {
  if (cudaSetDevice(ordinal) != cudaSuccess) cudaGetLastError();
}

std::string device_failure() {
  cudaError_t status = cudaStreamQuery(cudaStreamPerThread);
  return status == cudaSuccess || status == cudaErrorNotReady ? "" : describe(status);
}

DeviceInfo describe_device(int ordinal) {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    user_error("[cuda] expected a GPU, the driver says: {}; install NVIDIA's driver, or use --device=cpu",
               cudaGetErrorString(status));
  if (ordinal < 0 || ordinal >= count)
    user_error("[cuda] expected a device number below {}, got {}; nvidia-smi lists them", count, ordinal);
  cudaDeviceProp properties{};
  TOKAMAK_CUDA(cudaGetDeviceProperties(&properties, ordinal));
  if (properties.major < kOldestMajor)
    user_error("[cuda] expected compute capability {}.0 or newer, {} has {}.{}; use --device=cpu", kOldestMajor,
               properties.name, properties.major, properties.minor);
  return {properties.name,
          ordinal,
          properties.major,
          properties.minor,
          properties.multiProcessorCount,
          int64_t(properties.totalGlobalMem),
          int64_t(properties.l2CacheSize),
          attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal),
          list_versions()};
}

std::filesystem::path default_cache() {
  if (const char* own = std::getenv("TOKAMAK_CACHE")) return own;
  if (auto cache = absolute_path("XDG_CACHE_HOME"); !cache.empty()) return cache / "tokamak";
  if (auto home = absolute_path("HOME"); !home.empty()) return home / ".cache" / "tokamak";
  return {};
}

}  // namespace tokamak::cuda
