#include "backend/cuda/libraries/nvml.h"

namespace tokamak::cuda {

const LateLibrary& Nvml::library() {
  static const LateLibrary library("libnvidia-ml.so.1", "install NVIDIA's driver");
  return library;
}

std::unique_ptr<Nvml> Nvml::open() {
  if (!library().is_open() || library().find<&nvmlInit_v2>("nvmlInit_v2")() != kNvmlOk) return nullptr;
  return std::unique_ptr<Nvml>(new Nvml);
}

Nvml::~Nvml() { find<&nvmlShutdown>("nvmlShutdown")(); }

}  // namespace tokamak::cuda
