#include "backend/cuda/context.h"

#include "backend/cuda/matmul_library.h"

namespace tokamak::cuda {

std::shared_ptr<KernelCompiler> compiler_for(const DeviceInfo& device, const std::filesystem::path& cache,
                                             const std::shared_ptr<KernelCompiler>& early) {
  Architecture architecture{device.major, device.minor};
  if (!early || !early->is_for(device.ordinal, architecture))
    return std::make_shared<KernelCompiler>(device.ordinal, architecture, cache);
  early->begin_loading();
  return early;
}

Context::Context(const DeviceInfo& device, const std::filesystem::path& folder,
                 const std::shared_ptr<KernelCompiler>& early)
    : info(device), cache(folder), compiler(compiler_for(device, folder, early)),
      matmul_library(std::make_shared<MatmulLibrary>(info, stream.get(), cache)) {}

Context::Context(const DeviceInfo& device, const std::filesystem::path& folder,
                 std::shared_ptr<KernelCompiler> device_code, std::shared_ptr<MatmulLibrary> matmuls)
    : info(device), cache(folder), compiler(std::move(device_code)), matmul_library(std::move(matmuls)) {}

Context::Context(const DeviceInfo& device, std::shared_ptr<KernelCompiler> device_code)
    : info(device), stream(nullptr), compiler(std::move(device_code)) {}

Context::~Context() = default;

StreamContexts::StreamContexts(const DeviceInfo& device, const std::filesystem::path& cache,
                               const std::shared_ptr<KernelCompiler>& early) {
  contexts_.push_back(std::make_unique<Context>(device, cache, early));
}

Context& StreamContexts::at(int stream) {
  const Context& first = *contexts_[0];
  while (contexts_.size() <= size_t(stream))
    contexts_.push_back(std::make_unique<Context>(first.info, first.cache, first.compiler, first.matmul_library));
  return *contexts_[size_t(stream)];
}

}  // namespace tokamak::cuda
