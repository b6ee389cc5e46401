#include "backend/cuda/sensors.h"

#include "backend/cuda/libraries/nvml.h"

#include <cuda_runtime_api.h>

#include <utility>

namespace tokamak::cuda {
namespace {

constexpr int kClockOfUnits = 1, kSensorOfChip = 0;

class NvmlSensors : public DeviceSensors {
 public:
  NvmlSensors(std::unique_ptr<Nvml> nvml, nvmlDevice_st* device) : nvml_(std::move(nvml)), device_(device) {}

  SensorReading read() override {
    const Nvml& n = *nvml_;
    unsigned mhz = 0, milliwatts = 0, celsius = 0;
    unsigned long long millijoules = 0, reasons = 0;
    n.find<&nvmlDeviceGetClockInfo>("nvmlDeviceGetClockInfo")(device_, kClockOfUnits, &mhz);
    n.find<&nvmlDeviceGetPowerUsage>("nvmlDeviceGetPowerUsage")(device_, &milliwatts);
    n.find<&nvmlDeviceGetTotalEnergyConsumption>("nvmlDeviceGetTotalEnergyConsumption")(device_, &millijoules);
    n.find<&nvmlDeviceGetTemperature>("nvmlDeviceGetTemperature")(device_, kSensorOfChip, &celsius);
    n.find<&nvmlDeviceGetCurrentClocksThrottleReasons>("nvmlDeviceGetCurrentClocksThrottleReasons")(device_, &reasons);
    return {.clock_mhz = double(mhz),
            .watts = 1e-3 * milliwatts,
            .joules = 1e-3 * double(millijoules),
            .celsius = double(celsius),
            .slowdown = reasons};
  }

 private:
  std::unique_ptr<Nvml> nvml_;
  nvmlDevice_st* device_;
};

}  // namespace

std::unique_ptr<DeviceSensors> open_sensors(int ordinal) {
  char bus[32] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) != cudaSuccess) return nullptr;
  std::unique_ptr<Nvml> nvml = Nvml::open();
  nvmlDevice_st* device = nullptr;
  if (!nvml ||
      nvml->find<&nvmlDeviceGetHandleByPciBusId_v2>("nvmlDeviceGetHandleByPciBusId_v2")(bus, &device) != kNvmlOk)
    return nullptr;
  return std::make_unique<NvmlSensors>(std::move(nvml), device);
}

}  // namespace tokamak::cuda
