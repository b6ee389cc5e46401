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

TEST(Measure, BestSecondsWarmsUpAndRuns) {
  int calls = 0;
  EXPECT_GT(best_seconds(0, [&] { ++calls; }), 0);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace tokamak::cpu
