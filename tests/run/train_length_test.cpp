#include "run/train_length.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

// Steps of six sequences of 16 tokens.
RunConfig config_of(int64_t steps, double epochs, int64_t tokens) {
  RunConfig config;
  config.model.context = 16;
  config.train = {.steps = steps, .epochs = epochs, .tokens = tokens, .batch = 2, .total_batch = 6 * 16};
  return config;
}

int64_t steps_of(const RunConfig& config, int64_t windows = 50) {
  RunConfig with = with_steps(config, windows);
  EXPECT_EQ(with.train.epochs, 0);
  EXPECT_EQ(with.train.tokens, 0);
  return with.train.steps;
}

TEST(TrainLength, StepsAreThemselves) { EXPECT_EQ(steps_of(config_of(7, 0, 0)), 7); }

TEST(TrainLength, AnEpochIsOnePassOverTheWindows) {
  EXPECT_EQ(steps_of(config_of(0, 1, 0), 48), 8);
  EXPECT_EQ(steps_of(config_of(0, 1, 0), 49), 9) << "the last window as well";
  EXPECT_EQ(steps_of(config_of(0, 2, 0), 49), 17) << "98 samples";
  EXPECT_EQ(steps_of(config_of(0, 0.5, 0), 48), 4);
  EXPECT_EQ(steps_of(config_of(0, 1e-6, 0), 48), 1) << "a run has a step";
}

TEST(TrainLength, ARampTakesMoreSteps) {
  RunConfig config = config_of(0, 0, 960);
  config.train.ramp = {"4: total_batch=32"};
  EXPECT_EQ(steps_of(config), 13) << "4 of 32 and 9 of 96";
  config = config_of(0, 1, 0);
  config.train.ramp = {"4: total_batch=32"};
  EXPECT_EQ(steps_of(config, 48), 11) << "8 samples and 40";
}

TEST(TrainLength, TokensAreAtLeastAsMany) {
  EXPECT_EQ(steps_of(config_of(0, 0, 960)), 10);
  EXPECT_EQ(steps_of(config_of(0, 0, 961)), 11);
  EXPECT_EQ(steps_of(config_of(0, 0, 1)), 1);
}

TEST(TrainLength, WithoutATotalAStepIsAMicroBatch) {
  RunConfig config = config_of(0, 1, 0);
  config.train.total_batch = 0;
  EXPECT_EQ(steps_of(config, 48), 24);
}

TEST(TrainLength, MoreThanARunHasIsRefused) {
  expect_user_error([] { with_steps(config_of(0, 1e9, 0), int64_t(1) << 40); },
                    {"[train.epochs] expected at most 274877906944 steps, got 1e+09", "lower it"});
  expect_user_error([] { with_steps(config_of(0, 0, INT64_MAX), 1); }, {"[train.tokens]", "lower it"});
}

}  // namespace
}  // namespace tokamak
