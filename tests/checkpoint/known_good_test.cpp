#include "checkpoint/known_good.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "checkpoint/metrics.h"

namespace tokamak {
namespace {

StepMetrics step_of(int64_t step, double loss, bool applied = true) {
  return {.step = step, .loss = loss, .applied = applied};
}

/// Between -1 and 1.
double noise(uint64_t i) { return double(philox4x32(7, i)[0]) / 0x7fffffff - 1; }

TEST(LossBand, HoldsNoisyLossesThatFall) {
  LossBand band;
  int64_t outside = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    double loss = 3 + 7.8 * std::exp(-double(i) / 200) + 0.3 * noise(i);
    outside += !band.holds(loss);
    if (band.holds(loss)) band.add(loss);
  }
  EXPECT_EQ(outside, 0);
  EXPECT_NEAR(band.mean, 3, 0.2);
  EXPECT_TRUE(band.holds(3.3));
  EXPECT_FALSE(band.holds(5)) << band.lowest << ' ' << band.change;
}

// Though it rises so slowly that each loss is close to the one before.
TEST(LossBand, DoesNotFollowARise) {
  LossBand band;
  for (int i = 0; i < 100; ++i) band.add(3);
  double loss = 3;
  for (; band.holds(loss) && loss < 10; loss += 0.001) band.add(loss);
  EXPECT_LT(loss, 3.4);
}

TEST(LossBand, HoldsNothingThatIsNoNumber) {
  LossBand band;
  EXPECT_TRUE(band.holds(1e30));  // of what, nobody knows yet
  for (double loss : {std::numeric_limits<double>::infinity(), std::nan("")}) EXPECT_FALSE(band.holds(loss));
}

TEST(KnownGood, IsWhatTheStepBehindItShows) {
  KnownGood good;
  EXPECT_FALSE(good.add(step_of(1, 5)));
  good.saved(1);
  EXPECT_EQ(good.state().step, 0);
  EXPECT_TRUE(good.add(step_of(2, 4.9)));
  EXPECT_EQ(good.state().step, 1);
  EXPECT_FALSE(good.add(step_of(3, 4.8)));
  good.saved(3);
  EXPECT_FALSE(good.add(step_of(4, 80))) << "the state of step 3 is lost";
  EXPECT_FALSE(good.add(step_of(5, 4.8)));
  EXPECT_EQ(good.state().step, 1);
  good.saved(5);
  EXPECT_FALSE(good.add(step_of(6, 4.8, false))) << "its gradients are not finite";
  EXPECT_EQ(good.state().step, 1);
}

TEST(KnownGood, GoesOnWithWhatACheckpointKept) {
  KnownGood before;
  for (int64_t step = 1; step <= 4; ++step) before.add(step_of(step, 3));
  KnownGood good(before.state(), 4);
  EXPECT_FALSE(good.add(step_of(5, 30)));
  KnownGood other(before.state(), 4);
  EXPECT_TRUE(other.add(step_of(5, 3)));
  EXPECT_EQ(other.state().step, 4);
  EXPECT_EQ(KnownGood(KnownGoodState(), 4).state().step, 4) << "a checkpoint of an earlier version";
}

}  // namespace
}  // namespace tokamak
