#include "backend/cuda/context.h"

#include "backend/cuda/matmul_library.h"

namespace tokamak::cuda {

Context::Context(const DeviceInfo& device, const std::filesystem::path& folder)
    : info(device), cache(folder),
      compiler(std::make_shared<KernelCompiler>(device.ordinal, Architecture{device.major, device.minor}, folder)),
      matmul_library(std::make_shared<MatmulLibrary>(info, stream.get(), cache)) {}

Context::Context(const DeviceInfo& device, const std::filesystem::path& folder,
                 std::shared_ptr<KernelCompiler> device_code, std::shared_ptr<MatmulLibrary> matmuls)
    : info(device), cache(folder), compiler(std::move(device_code)), matmul_library(std::move(matmuls)) {}

Context::~Context() = default;

StreamContexts::StreamContexts(const DeviceInfo& device, const std::filesystem::path& cache) {
  contexts_.push_back(std::make_unique<Context>(device, cache));
}

Context& StreamContexts::at(int stream) {
  const Context& first = *contexts_[0];
  while (contexts_.size() <= size_t(stream))
    contexts_.push_back(std::make_unique<Context>(first.info, first.cache, first.compiler, first.matmul_library));
  return *contexts_[size_t(stream)];
}

}  // namespace tokamak::cuda
