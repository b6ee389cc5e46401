#include "run/learning_rate.h"

#include "config/optimizer_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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

const std::vector<int64_t> kSteps = {0, 9, 10, 35, 60, 109, 110, 300};

std::vector<double> rates_of(const OptimizerConfig& config, int64_t run_steps = 110) {
  std::vector<double> rates;
  for (int64_t step : kSteps) rates.push_back(learning_rate(step, config, run_steps));
  return rates;
}

void expect_rates(const OptimizerConfig& config, const std::vector<double>& expected, int64_t run_steps = 110) {
  std::vector<double> rates = rates_of(config, run_steps);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12) << "step " << kSteps[i];
}

OptimizerConfig config_of(const char* schedule) {
  OptimizerConfig config = kConfig;
  config.schedule = schedule;
  return config;
}

// By hand: 0.1 + 0.9 d(p) with p = 0, 0.25, 0.5 and 0.99.
TEST(LearningRate, DecaysInOtherWays) {
  expect_rates(config_of("linear"), {0.1, 1, 1, 0.775, 0.55, 0.109, 0.1, 0.1});
  expect_rates(config_of("1-sqrt"),
               {0.1, 1, 1, 0.55, 0.1 + 0.9 * (1 - std::sqrt(0.5)), 0.1 + 0.9 * (1 - std::sqrt(0.99)), 0.1, 0.1});
}

TEST(LearningRate, StaysWithoutAnEnd) {
  expect_rates(config_of("constant"), {0.1, 1, 1, 1, 1, 1, 1, 1});
  expect_rates(config_of("inverse_sqrt"), {0.1, 1, 1, std::sqrt(10.0 / 35), std::sqrt(10.0 / 60), std::sqrt(10.0 / 109),
                                           std::sqrt(10.0 / 110), std::sqrt(10.0 / 300)});
  EXPECT_DOUBLE_EQ(learning_rate(100'000, config_of("inverse_sqrt"), 110), 0.1) << "not below the last rate";
  OptimizerConfig without = config_of("inverse_sqrt");
  without.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(0, without, 110), 1);
  EXPECT_DOUBLE_EQ(learning_rate(4, without, 110), 0.5);
}

// Of 200 steps the last 40 decay: p = 0 at 160, 0.25 at 170.
TEST(LearningRate, WarmsUpStaysAndDecays) {
  OptimizerConfig config = config_of("wsd");
  expect_rates(config, {0.1, 1, 1, 1, 1, 1, 1, 0.1}, 200);
  EXPECT_DOUBLE_EQ(learning_rate(160, config, 200), 1);
  EXPECT_DOUBLE_EQ(learning_rate(170, config, 200), 0.55);
  config.wsd_decay = "linear";
  EXPECT_DOUBLE_EQ(learning_rate(170, config, 200), 0.775);
  config.wsd_decay = "cosine";
  EXPECT_NEAR(learning_rate(170, config, 200), 0.1 + 0.45 * (1 + std::sqrt(0.5)), 1e-12);
  config.wsd_decay_share = 0;
  EXPECT_DOUBLE_EQ(learning_rate(199, config, 200), 1) << "no decay";
  config.wsd_decay_share = 1;
  EXPECT_DOUBLE_EQ(learning_rate(10, config, 200), 1) << "from the end of the warm-up";
  EXPECT_LT(learning_rate(11, config, 200), 1);
}

TEST(LearningRate, ARunMayGoOnBehindItsSchedule) {
  for (const char* schedule : {"cosine", "linear", "1-sqrt", "wsd"}) {
    OptimizerConfig config = config_of(schedule);
    std::vector<double> expected = rates_of(config, 110);
    config.schedule_steps = 110;
    EXPECT_EQ(rates_of(config, 100'000), expected) << schedule;
  }
}

}  // namespace
}  // namespace tokamak
