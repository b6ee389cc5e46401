#include "base/random.h"
#include "model/initial_elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

TEST(InitParameter, IsNormalAndDependsOnSeedAndPlace) {
  ParameterInfo info{"w", {300, 301}, 0.02};
  std::vector<float> a = init_parameter(info, 3, 7);
  ASSERT_EQ(a.size(), size_t(300 * 301));
  double mean = 0, square = 0, fourth = 0;
  for (float v : a) mean += v, square += double(v) * v, fourth += std::pow(v, 4);
  double n = double(a.size()), variance = square / n;
  EXPECT_NEAR(mean / n, 0, 3e-4);
  EXPECT_NEAR(std::sqrt(variance), 0.02, 2e-4);
  EXPECT_NEAR(fourth / n / (variance * variance), 3, 0.1);  // a normal's kurtosis
  EXPECT_EQ(a, init_parameter(info, 3, 7));
  EXPECT_NE(a, init_parameter(info, 4, 7));
  EXPECT_NE(a, init_parameter(info, 3, 8));
  EXPECT_EQ(init_parameter({"g", {3}, 0, 1}, 0, 1), std::vector<float>(3, 1.0f));
}

// A value follows from its place, so the last of an odd number is what a longer tensor has there.
TEST(InitParameter, TheLastOfAnOddNumberIsDrawn) {
  std::vector<float> odd = init_parameter({"w", {5}, 0.02}, 3, 7), even = init_parameter({"w", {6}, 0.02}, 3, 7);
  even.pop_back();
  EXPECT_EQ(odd, even);
  EXPECT_NE(odd.back(), 0);
}

// A uniform number may be 0, whose logarithm is no number; 1 it never is. One in 2^24 draws, the first with this seed.
TEST(InitParameter, IsFiniteWhereAUniformNumberIsZero) {
  constexpr int64_t kSeed = 3313741;
  ASSERT_EQ(uniform_float(philox4x32(uint64_t(kSeed), 0, uint64_t(1) << 32)[0]), 0);
  for (float value : init_parameter({"w", {2}, 0.02}, 0, kSeed)) EXPECT_EQ(value, 0);
}

TEST(InitParameter, SomeElementsAreThoseOfTheWhole) {
  const ParameterInfo info{"w", {7, 9}, 0.02};
  std::vector<float> whole = init_parameter(info, 3, 7);
  for (size_t begin = 0; begin < whole.size(); ++begin)
    for (size_t count : {size_t(1), size_t(2), size_t(5), whole.size()}) {
      count = std::min(count, whole.size() - begin);
      std::vector<float> some(count);
      init_elements(info, 3, 7, int64_t(begin), some);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), whole.begin() + std::ptrdiff_t(begin))) << begin << " " << count;
    }
}

}  // namespace
}  // namespace tokamak
