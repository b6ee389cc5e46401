#include "backend/cpu/simd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tokamak::cpu {
namespace {

TEST(Simd, ExpIsAccurate) {
  for (float x = -87.2f; x < 88; x += 0.0371f) {
    float y = exp(broadcast(x))[kLanes - 1];
    EXPECT_NEAR(y / std::exp(double(x)), 1, 3e-7) << x;
  }
  EXPECT_EQ(exp(broadcast(0.0f))[0], 1.0f);
  EXPECT_EQ(exp(broadcast(-100.0f))[0], 0.0f);
  EXPECT_EQ(exp(broadcast(-std::numeric_limits<float>::infinity()))[0], 0.0f);
}

TEST(Simd, ReductionsSeeEveryLane) {
  for (int lane = 0; lane < kLanes; ++lane) {
    Vec v = broadcast(-2.0f);
    v[lane] = 5;
    EXPECT_EQ(reduce_max(v), 5);
    EXPECT_EQ(reduce_sum(v), 5 - 2 * (kLanes - 1));
  }
}

// Every pattern of 16 bits, NaN and infinities among them, from addresses that are not aligned.
TEST(Simd, VectorsOfBf16AreWidenedAsSingleOnesAre) {
  std::vector<Bf16> numbers(65536 + kLanes);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = Bf16(uint16_t(i));
  for (size_t at = 0; at < 65536; at += kLanes - 1) {
    Vec wide = load_bf16(numbers.data() + at);
    for (size_t lane = 0; lane < size_t(kLanes); ++lane)
      ASSERT_EQ(std::bit_cast<uint32_t>(float(wide[lane])), std::bit_cast<uint32_t>(to_float(numbers[at + lane])));
  }
}

TEST(Simd, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_float(from_float<Bf16>(1.0f)), 1.0f);
  EXPECT_EQ(to_float(from_float<Bf16>(1.0f + 0x1p-8f)), 1.0f);                // a tie, down to even
  EXPECT_EQ(to_float(from_float<Bf16>(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f);  // a tie, up to even
  EXPECT_EQ(to_float(from_float<Bf16>(1.0f + 0x1p-8f + 0x1p-20f)), 1.0f + 0x1p-7f);
  EXPECT_TRUE(std::isinf(to_float(from_float<Bf16>(std::numeric_limits<float>::infinity()))));
  EXPECT_TRUE(std::isnan(to_float(from_float<Bf16>(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace tokamak::cpu
