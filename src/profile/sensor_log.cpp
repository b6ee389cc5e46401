#include "profile/sensor_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tokamak {

SensorLog::SensorLog(std::unique_ptr<DeviceSensors> sensors, double every_seconds) : sensors_(std::move(sensors)) {
  if (sensors_) thread_ = std::thread([this, every_seconds] { read_on(every_seconds); });
}

SensorLog::~SensorLog() { stop(); }

void SensorLog::read_on(double every_seconds) {
  std::unique_lock lock(mutex_);
  while (!stops_) {
    std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    readings_.push_back({now.count(), sensors_->read()});
    stopped_.wait_for(lock, std::chrono::duration<double>(every_seconds), [this] { return stops_; });
  }
}

std::vector<TimedReading> SensorLog::stop() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
  return std::exchange(readings_, {});
}

SensorSummary summarise(std::span<const TimedReading> readings) {
  SensorSummary summary{.readings = int64_t(readings.size())};
  if (readings.empty()) return summary;
  auto n = double(readings.size());
  summary.least_mhz = readings[0].reading.clock_mhz;
  for (const TimedReading& timed : readings) {
    const SensorReading& r = timed.reading;
    summary.least_mhz = std::min(summary.least_mhz, r.clock_mhz);
    summary.most_mhz = std::max(summary.most_mhz, r.clock_mhz);
    summary.mean_mhz += r.clock_mhz / n;
    summary.mean_watts += r.watts / n;
    summary.most_watts = std::max(summary.most_watts, r.watts);
    summary.most_celsius = std::max(summary.most_celsius, r.celsius);
  }
  for (const SlowdownReason& reason : kSlowdownReasons) {
    auto slowed = std::count_if(readings.begin(), readings.end(),
                                [&](const TimedReading& timed) { return timed.reading.slowdown & reason.bit; });
    if (slowed > 0) summary.slowdowns.emplace_back(reason.name, double(slowed) / n);
  }
  return summary;
}

std::string to_string(const SensorSummary& s) {
  if (s.readings == 0) return "";
  std::string text = fmt::format("clock {:.0f} MHz ({:.0f} to {:.0f}), {:.0f} W (at most {:.0f}), at most {:.0f} C",
                                 s.mean_mhz, s.least_mhz, s.most_mhz, s.mean_watts, s.most_watts, s.most_celsius);
  for (const auto& [reason, share] : s.slowdowns)
    text += fmt::format("; slowed down by {} {:.0f}% of the time", reason, 100 * share);
  return text;
}

}  // namespace tokamak
