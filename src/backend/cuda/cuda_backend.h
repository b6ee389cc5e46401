// The NVIDIA backend: cuBLASLt for matmuls, cuDNN (or an own blocked kernel) for attention, kernels compiled at run
// time for everything else. This header compiles without CUDA; where the program was built without it, is_built() is
// false.
#pragma once

#include "backend/backend.h"
#include "backend/kernel_tuning.h"
#include "config/gpu_config.h"
#include "graph/platform.h"

#include <filesystem>
#include <memory>
#include <optional>

namespace tokamak::cuda {

class KernelCompiler;

struct DeviceInfo {
  std::string name;  // "NVIDIA H200"
  int ordinal = 0;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes = 0;  // per block, at most
  std::string versions;      // of driver, runtime, cuBLASLt, cuDNN, NVRTC: what a measurement is written down with
};

/// Whether this program was built with CUDA.
bool is_built();

/// Of the libraries that the program was built with and of the cuDNN that it finds, or what it takes to have them. Asks
/// no device, and opens no library that takes long.
std::string library_versions();

/// Number of usable GPUs; 0 where there is no driver.
int device_count();

/// Hides all GPUs but the first from this process, by CUDA_VISIBLE_DEVICES, as the driver takes tenths of a second to
/// begin each. To be called before anything else here, and before there are other threads.
void hide_other_devices();

/// Begins the device, which all else here would wait for; a failure is left for what comes then to tell.
void begin_device(int ordinal);

/// Throws UserError when there is no such device or its compute capability is below 8.0.
DeviceInfo describe_device(int ordinal);

/// What the GPU that this thread works on has failed with, after which no call on it works in this process; empty:
/// nothing, also while kernels are under way.
std::string device_failure();

/// Where compiled kernels and matmul choices are kept: $TOKAMAK_CACHE (empty: nowhere), else $XDG_CACHE_HOME/tokamak,
/// else $HOME/.cache/tokamak; these two only where they are absolute paths.
std::filesystem::path default_cache();

/// The device code that is written for a group, for an H200; empty for nodes whose kernel is a library's or written by
/// hand.
std::string generated_source(const Node& node);

/// Works on one GPU. Throws UserError as describe_device does. An empty `cache` keeps nothing on disk. `early`: of
/// EarlyCode, used where it is for such a GPU.
std::unique_ptr<Backend> make_backend(int ordinal, const std::filesystem::path& cache,
                                      const std::shared_ptr<KernelCompiler>& early = nullptr);

/// The kind of the first GPU that this process sees, told by the driver's `folder` before it has begun the GPU, for
/// which NVML would wait. None where there is no such folder, the kind or its units are not known, or
/// CUDA_VISIBLE_DEVICES does not begin with a number.
std::optional<GpuConfig> expected_gpu(const std::filesystem::path& folder = "/proc/driver/nvidia/gpus");

/// Device code for GPUs of a kind, which takes none to compile. It is for the cache, where a start on such a GPU finds
/// it, and for a backend of device 0 that is given the compiler.
class EarlyCode : public CodeAhead {
 public:
  struct Progress {
    int64_t asked = 0, compiled = 0;  // sources
  };
  virtual Progress progress() = 0;
  /// Waits for all; throws what the compiler has thrown.
  virtual void finish() = 0;
  virtual const std::shared_ptr<KernelCompiler>& compiler() const = 0;
};

/// UserError where there is no NVRTC.
std::unique_ptr<EarlyCode> begin_code(const GpuConfig& gpu, const std::filesystem::path& cache);

/// UserError where the cache keeps nothing.
void require_keeping(const std::filesystem::path& cache);

/// The device that the backend works on; its bandwidth is measured now (a few milliseconds).
Platform measure_platform(Backend& backend, int ordinal);

/// A described GPU, or an H200: for planning and explaining without one.
Platform nominal_platform(const GpuConfig& gpu);
Platform nominal_platform();
/// The same as a driver would describe it.
DeviceInfo nominal_device(const GpuConfig& gpu);

}  // namespace tokamak::cuda
