#include "ops/dynamic_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// create_dynamic_map of bitsandbytes 0.50 has these.
TEST(DynamicMap, HasTheNumbersOfBitsandbytes) {
  const DynamicMap both(true), positive(false);
  const std::pair<int, double> of_both[] =
      {{0, -0.992968738},     {1, -0.978906274},     {100, -0.00746874977}, {126, -5.50000038e-07}, {127, 0},
       {128, 5.50000038e-07}, {129, 3.25000019e-06}, {200, 0.233593747},    {254, 0.992968738},     {255, 1}},
                               of_positive[] = {{0, 0},
                                                {1, 3.2500003e-07},
                                                {100, 0.0627343804},
                                                {126, 0.0992968753},
                                                {127, 0.103515625},
                                                {128, 0.110546872},
                                                {129, 0.117578126},
                                                {200, 0.616796851},
                                                {254, 0.996484399},
                                                {255, 1}};
  for (auto [code, value] : of_both) EXPECT_NEAR(both.value(uint8_t(code)), value, 2e-7 * std::fabs(value)) << code;
  for (auto [code, value] : of_positive)
    EXPECT_NEAR(positive.value(uint8_t(code)), value, 2e-7 * std::fabs(value)) << code;
  for (const DynamicMap* map : {&both, &positive})
    EXPECT_TRUE(std::is_sorted(map->values().begin(), map->values().end()));
}

// By comparing with all.
uint8_t nearest(const DynamicMap& map, float x) {
  size_t best = 0;
  for (size_t code = 1; code < 256; ++code)
    if (std::fabs(double(map.values()[code]) - x) < std::fabs(double(map.values()[best]) - x)) best = code;
  return uint8_t(best);
}

TEST(DynamicMap, ACodeIsThatOfTheNearestNumber) {
  const DynamicMap both(true), positive(false);
  for (int i = 0; i <= 20000; ++i) {
    auto x = float(std::pow(10.0, -9 + 9.0 * i / 20000));
    EXPECT_EQ(both.code(x), nearest(both, x)) << x;
    EXPECT_EQ(both.code(-x), nearest(both, -x)) << x;
    EXPECT_EQ(positive.code(x), nearest(positive, x)) << x;
  }
}

TEST(DynamicMap, NumbersAreTheirOwnAndMidpointsTurn) {
  for (bool is_signed : {true, false}) {
    const DynamicMap map(is_signed);
    for (int code = 0; code < 256; ++code) EXPECT_EQ(map.code(map.value(uint8_t(code))), code);
    for (size_t i = 0; i < 255; ++i) {
      float middle = map.midpoints()[i];
      EXPECT_EQ(map.code(std::nextafter(middle, 2.0f)), i + 1);
      EXPECT_EQ(map.code(std::nextafter(middle, -2.0f)), i);
    }
    EXPECT_EQ(map.value(map.code(0)), 0);
    EXPECT_EQ(map.value(map.code(1)), 1);
    EXPECT_EQ(map.code(1e-30f), map.code(0));
  }
}

}  // namespace
}  // namespace tokamak
