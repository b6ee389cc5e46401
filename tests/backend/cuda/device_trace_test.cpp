#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cupti.h"
#include "tests/backend/cuda/gpu_harness.h"

namespace tokamak::test {
namespace {

TEST(DeviceTrace, TellsOfWhatWasAskedForUnderATag) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  std::unique_ptr<Backend> backend = cuda::make_backend(0, {});
  constexpr int64_t kBytes = int64_t(1) << 28;
  std::unique_ptr<Memory> from = backend->allocate(kBytes), to = backend->allocate(kBytes);
  backend->synchronize();
  std::unique_ptr<DeviceTrace> trace = backend->trace_device();
  if (!trace) GTEST_SKIP() << "CUPTI is not there";
  for (uint64_t tag : {7, 8}) {
    trace->push(tag);
    backend->copy(to->data(), from->data(), kBytes);
    trace->pop();
  }
  backend->copy(to->data(), from->data(), kBytes);
  backend->synchronize();
  std::vector<DeviceActivity> activities = trace->take();
  ASSERT_EQ(activities.size(), 2u);
  EXPECT_EQ(activities[0].tag, 7u);
  EXPECT_EQ(activities[1].tag, 8u);
  EXPECT_GT(activities[0].begin, 0);
  EXPECT_LT(activities[0].begin, activities[0].end);
  EXPECT_LE(activities[0].end, activities[1].begin);
}

TEST(DeviceSensors, KnowClockPowerAndHeat) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  std::unique_ptr<DeviceSensors> sensors = cuda::make_backend(0, {})->open_sensors();
  if (!sensors) GTEST_SKIP() << "NVML is not there";
  SensorReading reading = sensors->read();
  EXPECT_GT(reading.clock_mhz, 0);
  EXPECT_GT(reading.watts, 0);
  EXPECT_GT(reading.joules, 0);
  EXPECT_GT(reading.celsius, 0);
}

}  // namespace
}  // namespace tokamak::test
