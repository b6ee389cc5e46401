// A GPU's sensors by NVML, the driver's library, opened when they are asked for.
#pragma once

#include "backend/device_sensors.h"

#include <memory>

namespace tokamak::cuda {

/// Null where NVML is not there or does not know the device.
std::unique_ptr<DeviceSensors> open_sensors(int ordinal);

}  // namespace tokamak::cuda
