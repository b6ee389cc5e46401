// What the kernels of one stream share, much of it with those of the others.
#pragma once

#include "backend/cuda/device.h"
#include "backend/cuda/kernel_compiler.h"

namespace tokamak::cuda {

struct CudnnPlans;
class MatmulLibrary;

/// `early`, which then makes functions, where it is for such a device; else a new one. `early` may be null.
std::shared_ptr<KernelCompiler> compiler_for(const DeviceInfo& device, const std::filesystem::path& cache,
                                             const std::shared_ptr<KernelCompiler>& early);

struct Context {
  /// `early`: see compiler_for.
  Context(const DeviceInfo& device, const std::filesystem::path& cache,
          const std::shared_ptr<KernelCompiler>& early = nullptr);
  /// To compile device code alone: without a stream, and without products that a library does.
  Context(const DeviceInfo& device, std::shared_ptr<KernelCompiler> compiler);
  /// For another stream, which shares these with the first.
  Context(const DeviceInfo& device, const std::filesystem::path& cache, std::shared_ptr<KernelCompiler> compiler,
          std::shared_ptr<MatmulLibrary> matmuls);
  ~Context();

  DeviceInfo info;
  StreamHandle stream;
  std::filesystem::path cache;  // empty: none
  std::shared_ptr<KernelCompiler> compiler;
  std::shared_ptr<CudnnPlans> cudnn;  // made by the first kernel that needs it

  std::shared_ptr<MatmulLibrary> matmul_library;

  cudaStream_t queue() const { return stream.get(); }
  MatmulLibrary& matmuls() const { return *matmul_library; }
};

/// The contexts of a backend's streams, each made when it is first asked for.
class StreamContexts {
 public:
  StreamContexts(const DeviceInfo& device, const std::filesystem::path& cache,
                 const std::shared_ptr<KernelCompiler>& early);
  Context& at(int stream);

 private:
  std::vector<std::unique_ptr<Context>> contexts_;
};

}  // namespace tokamak::cuda
