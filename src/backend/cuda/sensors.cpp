#include "backend/cuda/sensors.h"

#include "backend/cuda/libraries/late_library.h"

#include <cuda_runtime_api.h>

// What is used of NVML's binary interface. Its header is a package of its own, and these have not changed since NVML 2.
extern "C" {
struct nvmlDevice_st;
int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, nvmlDevice_st** device);
int nvmlDeviceGetClockInfo(nvmlDevice_st* device, int clock, unsigned* mhz);
int nvmlDeviceGetPowerUsage(nvmlDevice_st* device, unsigned* milliwatts);
int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_st* device, unsigned long long* millijoules);
int nvmlDeviceGetTemperature(nvmlDevice_st* device, int sensor, unsigned* celsius);
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_st* device, unsigned long long* reasons);
}

namespace tokamak::cuda {
namespace {

constexpr int kOk = 0, kClockOfUnits = 1, kSensorOfChip = 0;

const LateLibrary& nvml_library() {
  static const LateLibrary library("libnvidia-ml.so.1", "install NVIDIA's driver");
  return library;
}

template <auto* function>
auto* find(const char* name) {
  return nvml_library().find<function>(name);
}

class NvmlSensors : public DeviceSensors {
 public:
  explicit NvmlSensors(nvmlDevice_st* device) : device_(device) {}
  ~NvmlSensors() override { find<&nvmlShutdown>("nvmlShutdown")(); }
  NvmlSensors(const NvmlSensors&) = delete;
  NvmlSensors& operator=(const NvmlSensors&) = delete;

  SensorReading read() override {
    unsigned mhz = 0, milliwatts = 0, celsius = 0;
    unsigned long long millijoules = 0, reasons = 0;
    find<&nvmlDeviceGetClockInfo>("nvmlDeviceGetClockInfo")(device_, kClockOfUnits, &mhz);
    find<&nvmlDeviceGetPowerUsage>("nvmlDeviceGetPowerUsage")(device_, &milliwatts);
    find<&nvmlDeviceGetTotalEnergyConsumption>("nvmlDeviceGetTotalEnergyConsumption")(device_, &millijoules);
    find<&nvmlDeviceGetTemperature>("nvmlDeviceGetTemperature")(device_, kSensorOfChip, &celsius);
    find<&nvmlDeviceGetCurrentClocksThrottleReasons>("nvmlDeviceGetCurrentClocksThrottleReasons")(device_, &reasons);
    return {.clock_mhz = double(mhz),
            .watts = 1e-3 * milliwatts,
            .joules = 1e-3 * double(millijoules),
            .celsius = double(celsius),
            .slowdown = reasons};
  }

 private:
  nvmlDevice_st* device_;
};

}  // namespace

std::unique_ptr<DeviceSensors> open_sensors(int ordinal) {
  char bus[32] = {};
  if (!nvml_library().is_open() || cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) != cudaSuccess) return nullptr;
  if (find<&nvmlInit_v2>("nvmlInit_v2")() != kOk) return nullptr;
  nvmlDevice_st* device = nullptr;
  if (find<&nvmlDeviceGetHandleByPciBusId_v2>("nvmlDeviceGetHandleByPciBusId_v2")(bus, &device) == kOk)
    return std::make_unique<NvmlSensors>(device);
  find<&nvmlShutdown>("nvmlShutdown")();
  return nullptr;
}

}  // namespace tokamak::cuda
