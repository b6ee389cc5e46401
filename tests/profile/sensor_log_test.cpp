#include "profile/sensor_log.h"

#include <gtest/gtest.h>

#include <atomic>

namespace tokamak {
namespace {

class CountingSensors : public DeviceSensors {
 public:
  explicit CountingSensors(std::atomic<int>& reads) : reads_(reads) {}
  SensorReading read() override { return {.clock_mhz = double(++reads_)}; }

 private:
  std::atomic<int>& reads_;
};

TEST(SensorLog, ReadsUntilItIsStopped) {
  std::atomic<int> reads = 0;
  SensorLog log(std::make_unique<CountingSensors>(reads), 1e-4);
  while (reads < 3) std::this_thread::yield();
  std::vector<TimedReading> readings = log.stop();
  EXPECT_EQ(int(readings.size()), reads.load());
  for (size_t i = 1; i < readings.size(); ++i) EXPECT_GT(readings[i].at, readings[i - 1].at);
  EXPECT_TRUE(log.stop().empty());
}

TEST(SensorLog, OfADeviceWithoutSensorsIsEmpty) {
  SensorLog log(nullptr);
  EXPECT_TRUE(log.stop().empty());
  EXPECT_EQ(to_string(summarise({})), "");
}

TEST(SensorSummary, SaysWhatSlowedTheDeviceDownAndHowOften) {
  std::vector<TimedReading> readings{{0.0, {.clock_mhz = 1980, .watts = 500, .celsius = 40, .slowdown = 0x1}},
                                     {0.1, {.clock_mhz = 1700, .watts = 700, .celsius = 60, .slowdown = 0x4}},
                                     {0.2, {.clock_mhz = 1720, .watts = 690, .celsius = 61, .slowdown = 0x4 | 0x20}},
                                     {0.3, {.clock_mhz = 1800, .watts = 690, .celsius = 61, .slowdown = 0}}};
  EXPECT_EQ(to_string(summarise(readings)),
            "clock 1800 MHz (1700 to 1980), 645 W (at most 700), at most 61 C; slowed down by power limit 50% of the "
            "time; slowed down by temperature 25% of the time");
}

}  // namespace
}  // namespace tokamak
