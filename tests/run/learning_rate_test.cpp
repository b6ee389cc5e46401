#include "run/learning_rate.h"

#include "config/optimizer_config.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

const OptimizerConfig kConfig = {.lr = 1.0, .min_lr_ratio = 0.1, .warmup_steps = 10};

TEST(LearningRate, WarmsUpInAStraightLineFromTheFirstStep) {
  for (int step = 0; step < 10; ++step) EXPECT_DOUBLE_EQ(learning_rate(step, kConfig, 110), (step + 1) / 10.0);
}

TEST(LearningRate, ThenFollowsHalfACosine) {
  EXPECT_DOUBLE_EQ(learning_rate(10, kConfig, 110), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(60, kConfig, 110), 0.55);       // the middle
  EXPECT_NEAR(learning_rate(35, kConfig, 110), 0.868198, 1e-6);  // a quarter: 0.1 + 0.9 (1 + sqrt(1/2)) / 2
  for (int step = 10; step < 120; ++step)
    EXPECT_LE(learning_rate(step + 1, kConfig, 110), learning_rate(step, kConfig, 110));
}

TEST(LearningRate, EndsAtTheMinimum) {
  EXPECT_DOUBLE_EQ(learning_rate(110, kConfig, 110), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(100000, kConfig, 110), 0.1);
}

TEST(LearningRate, WithoutWarmUp) {
  OptimizerConfig config = kConfig;
  config.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(0, config, 100), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(50, config, 100), 0.55);
}

TEST(LearningRate, WarmUpAsLongAsTheRunOrLonger) {
  EXPECT_DOUBLE_EQ(learning_rate(4, kConfig, 5), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(9, kConfig, 10), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(10, kConfig, 10), 0.1);
}

}  // namespace
}  // namespace tokamak
