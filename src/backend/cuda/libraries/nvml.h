// NVML, by which the driver tells of GPUs that nobody has begun. What is used of its binary interface is declared here:
// its header is a package of its own, and these have not changed since NVML 2.
#pragma once

#include "backend/cuda/libraries/late_library.h"

#include <memory>

extern "C" {
struct nvmlDevice_st;
int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_st** device);
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, nvmlDevice_st** device);
int nvmlDeviceGetName(nvmlDevice_st* device, char* name, unsigned length);
int nvmlDeviceGetClockInfo(nvmlDevice_st* device, int clock, unsigned* mhz);
int nvmlDeviceGetPowerUsage(nvmlDevice_st* device, unsigned* milliwatts);
int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_st* device, unsigned long long* millijoules);
int nvmlDeviceGetTemperature(nvmlDevice_st* device, int sensor, unsigned* celsius);
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_st* device, unsigned long long* reasons);
}

namespace tokamak::cuda {

inline constexpr int kNvmlOk = 0;

/// NVML's functions, for as long as it lives.
class Nvml {
 public:
  /// Null where there is no driver.
  static std::unique_ptr<Nvml> open();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  template <auto* function>
  auto* find(const char* name) const {
    return library().find<function>(name);
  }

 private:
  Nvml() = default;
  static const LateLibrary& library();
};

}  // namespace tokamak::cuda
