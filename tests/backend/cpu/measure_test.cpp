#include "backend/cpu/measure.h"

#include "base/parallel.h"

#include <gtest/gtest.h>

namespace tokamak::cpu {
namespace {

TEST(Measure, RatesAreOfThisWorld) {
  MachinePeaks peaks = measure_machine();
  EXPECT_EQ(peaks.threads, num_threads());
  EXPECT_GT(peaks.f32_flops, 1e7);
  EXPECT_LT(peaks.f32_flops, 1e15);
  EXPECT_GE(peaks.bf16_flops, 0);
  EXPECT_GT(peaks.memory_bandwidth, 1e7);
  EXPECT_LT(peaks.memory_bandwidth, 1e14);
}

TEST(Measure, ArraysAreBeyondTheCacheAndHaveRoom) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_EQ(triad_array_bytes(0, 0), 64 * kMiB);
  EXPECT_EQ(triad_array_bytes(48 * kMiB, 16384 * kMiB), 96 * kMiB);
  EXPECT_EQ(triad_array_bytes(480 * kMiB, 16384 * kMiB), 128 * kMiB);
  EXPECT_EQ(triad_array_bytes(480 * kMiB, 300 * kMiB), 50 * kMiB) << "a container's limit";
}

TEST(Measure, BestSecondsWarmsUpAndRuns) {
  int calls = 0;
  EXPECT_GT(best_seconds(0, [&] { ++calls; }), 0);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace tokamak::cpu
