#include "backend/cuda/context.h"

#include "backend/cuda/matmul_library.h"

namespace tokamak::cuda {

Context::Context(const DeviceInfo& device, const std::filesystem::path& folder)
    : info(device), cache(folder),
      compiler(device.ordinal, {device.major, device.minor}, folder.empty() ? folder : folder / "kernels"),
      matmul_library(std::make_unique<MatmulLibrary>(info, stream.get(), cache)) {}

Context::~Context() = default;

}  // namespace tokamak::cuda
