// What the kernels of one backend share.
#pragma once

#include "backend/cuda/device.h"
#include "backend/cuda/kernel_compiler.h"

namespace tokamak::cuda {

struct Context {
  Context(const DeviceInfo& device, const std::filesystem::path& cache);

  DeviceInfo info;
  StreamHandle stream;
  std::filesystem::path cache;  // empty: none
  KernelCompiler compiler;

  cudaStream_t queue() const { return stream.get(); }
};

}  // namespace tokamak::cuda
