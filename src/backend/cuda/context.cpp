#include "backend/cuda/context.h"

namespace tokamak::cuda {

Context::Context(const DeviceInfo& device, const std::filesystem::path& folder)
    : info(device), cache(folder),
      compiler(device.ordinal, {device.major, device.minor}, folder.empty() ? folder : folder / "kernels") {}

}  // namespace tokamak::cuda
