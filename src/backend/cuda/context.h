// What the kernels of one backend share.
#pragma once

#include "backend/cuda/device.h"
#include "backend/cuda/kernel_compiler.h"

namespace tokamak::cuda {

struct CudnnPlans;

struct Context {
  Context(const DeviceInfo& device, const std::filesystem::path& cache);

  DeviceInfo info;
  StreamHandle stream;
  std::filesystem::path cache;  // empty: none
  KernelCompiler compiler;
  std::shared_ptr<CudnnPlans> cudnn;  // made by the first kernel that needs it

  cudaStream_t queue() const { return stream.get(); }
};

}  // namespace tokamak::cuda
