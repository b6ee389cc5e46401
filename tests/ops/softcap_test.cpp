#include "ops/softcap.h"

#include "graph/attrs.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak {
namespace {

TEST(Softcap, KeepsTheLogitsWithinTheCap) {
  EXPECT_NEAR(softcap(1.5, {.cap = 15}), 15 * std::tanh(0.1), 1e-15);
  EXPECT_NEAR(softcap(1e9, {.cap = 15}), 15, 1e-12);
  EXPECT_NEAR(softcap(-1e9, {.cap = 15}), -15, 1e-12);
  EXPECT_EQ(softcap(1.5, {}), 1.5);
}

// The form with a logistic function: 23 / (1 + exp(-(x + 5) / 7.5)).
TEST(Softcap, IsTheLogisticFormButForAConstant) {
  Softcap logistic{.cap = 11.5, .shift = 5, .width = 15};
  for (double x : {-30.0, -5.0, 0.0, 2.0, 40.0})
    EXPECT_NEAR(softcap(x, logistic), 23 / (1 + std::exp(-(x + 5) / 7.5)) - 11.5, 1e-12) << x;
}

TEST(Softcap, HasTheSlopeOfItsValues) {
  for (const Softcap& cap : {Softcap{}, Softcap{3}, Softcap{2, 5, 4}})
    for (double x : {-7.0, -0.5, 0.0, 3.0})
      EXPECT_NEAR(softcap_slope(x, cap), (softcap(x + 1e-6, cap) - softcap(x - 1e-6, cap)) / 2e-6, 1e-8);
}

TEST(Softcap, GoesThroughAttributes) {
  Attrs none, all;
  set_softcap(none, {});
  EXPECT_TRUE(none.empty());
  set_softcap(all, {2, -5, 4});
  EXPECT_EQ(softcap_of(all), (Softcap{2, -5, 4}));
  EXPECT_EQ(softcap_of(none), Softcap{});
}

}  // namespace
}  // namespace tokamak
