// A device's sensors, read by a thread while steps run. Tests: tests/profile/sensor_log_test.cpp.
#pragma once

#include "backend/device_sensors.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tokamak {

/// A reading, and when it was taken.
struct TimedReading {
  double at = 0;
  SensorReading reading;
};

class SensorLog {
 public:
  /// Reads now and from then on, every so many seconds; null sensors: never.
  explicit SensorLog(std::unique_ptr<DeviceSensors> sensors, double every_seconds = 0.02);
  ~SensorLog();
  SensorLog(const SensorLog&) = delete;
  SensorLog& operator=(const SensorLog&) = delete;

  /// Ends it; what was read, at seconds of the machine's clock (WorkRecorder::start_seconds).
  std::vector<TimedReading> stop();

 private:
  void read_on(double every_seconds);

  std::unique_ptr<DeviceSensors> sensors_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stops_ = false;
  std::vector<TimedReading> readings_;
  std::thread thread_;
};

struct SensorSummary {
  int64_t readings = 0;
  double least_mhz = 0, mean_mhz = 0, most_mhz = 0;
  double mean_watts = 0, most_watts = 0;
  double most_celsius = 0;
  /// Share of the readings in which the device was slowed down, by reason; those that never did are left out.
  std::vector<std::pair<std::string, double>> slowdowns;
};

SensorSummary summarise(std::span<const TimedReading> readings);

/// "clock 1920 MHz (1755 to 1980), 612 W (at most 702), at most 61 C; slowed down by power limit 40% of the time";
/// empty without readings.
std::string to_string(const SensorSummary& summary);

}  // namespace tokamak
