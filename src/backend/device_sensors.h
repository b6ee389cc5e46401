// Clock, power and heat of a device while it works. Tests: tests/profile/sensor_log_test.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak {

/// Why a device runs below its highest clock.
struct SlowdownReason {
  uint64_t bit;
  const char* name;
};

struct SensorReading {
  double clock_mhz = 0;  // of its units
  double watts = 0;
  double joules = 0;  // used since the driver began to count; differences mean something
  double celsius = 0;
  uint64_t slowdown = 0;  // bits of kSlowdownReasons
};

/// By NVML's bits (nvmlClocksThrottleReasons); those of a device at rest and of a chosen clock are none.
inline constexpr SlowdownReason kSlowdownReasons[] = {{0x4, "power limit"},
                                                      {0x8, "hardware slowdown"},
                                                      {0x20, "temperature"},
                                                      {0x40, "temperature (hardware)"},
                                                      {0x80, "power brake"}};

class DeviceSensors {
 public:
  virtual ~DeviceSensors() = default;
  /// Now; from any thread. What cannot be read is 0.
  virtual SensorReading read() = 0;
};

}  // namespace tokamak
