#include "run/validation_watch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/train_config.h"

namespace tokamak {
namespace {

/// After how many of these losses training ends; 0: it does not.
int64_t ends_after(const TrainConfig& config, const std::vector<double>& losses) {
  ValidationWatch watch(config, {}, {});
  for (size_t i = 0; i < losses.size(); ++i) {
    watch.add({int64_t(i + 1), losses[i]});
    if (watch.is_over()) return int64_t(i + 1);
  }
  return 0;
}

TEST(ValidationWatch, EndsWhenNothingImprovesForLong) {
  TrainConfig config{.patience = 2};
  EXPECT_EQ(ends_after(config, {5, 4, 4.5, 3.9, 4, 4}), 6);
  EXPECT_EQ(ends_after(config, {5, 4, 4, 4}), 4) << "an equal loss is no improvement";
  EXPECT_EQ(ends_after(config, {5, 4, 4.5, 3.9, 4, 3.8, 4}), 0);
  config.patience = 0;
  EXPECT_EQ(ends_after(config, {5, 6, 7, 8, 9, 10}), 0) << "off";
}

// Small steps that add up to a large one are an improvement on the loss that was.
TEST(ValidationWatch, AnImprovementHasASize) {
  TrainConfig config{.patience = 3, .min_improvement = 0.125};
  EXPECT_EQ(ends_after(config, {5, 4.9375, 4.875, 4.8125, 4.75}), 0);
  EXPECT_EQ(ends_after(config, {5, 4.9375, 4.90625, 4.875}), 4) << "as much as that is not more";
}

TEST(ValidationWatch, WhatIsNoNumberImprovesOnNothing) {
  TrainConfig config{.patience = 2, .keep_best = true};
  EXPECT_EQ(ends_after(config, {NAN, NAN}), 2);
  EXPECT_EQ(ends_after(config, {NAN, 5, NAN, 4}), 0);
  EXPECT_EQ(ends_after(config, {5, NAN, NAN}), 3);
  ValidationWatch watch(config, {{1, NAN}}, {{1, NAN}});
  EXPECT_EQ(watch.best_step(), 0);
}

// Wherever it stopped and went on.
TEST(ValidationWatch, GoesOnFromTheLossesBefore) {
  TrainConfig config{.patience = 3, .min_improvement = 0.01, .keep_best = true};
  ValLosses all = {{10, 5}, {20, 4}, {30, 4.2}, {40, 3.995}, {50, 4.1}};
  for (size_t before = 0; before <= all.size(); ++before) {
    ValLosses told = val_losses_from_text(to_text({all.begin(), all.begin() + int64_t(before)}));
    ValidationWatch watch(config, told, told);
    for (size_t i = before; i < all.size(); ++i) watch.add(all[i]);
    EXPECT_TRUE(watch.is_over()) << before;
    EXPECT_EQ(watch.best_step(), 40) << before;
    EXPECT_NE(watch.why_over().find("the last 3 validation losses were not lower than 4.0000, that after step 20, by "
                                    "more than 0.01 (train.patience = 3)"),
              std::string::npos)
        << watch.why_over();
  }
}

TEST(ValidationWatch, TheBestIsOneThatIsThere) {
  TrainConfig config{.keep_best = true};
  ValLosses before = {{10, 5}, {20, 3}, {30, 4}, {40, 4}};
  ValLosses saved = {{10, 5}, {30, 4}, {40, 4}};
  ValidationWatch watch(config, before, saved);
  EXPECT_EQ(watch.best_step(), 30) << "the first of two that are equal";
  watch.add({50, 3.5});
  EXPECT_EQ(watch.best_step(), 50);
  config.keep_best = false;
  EXPECT_EQ(ValidationWatch(config, before, saved).best_step(), 0);
}

TEST(ValidationWatch, LossesPassAsText) {
  ValLosses losses = {{1, 0.1}, {200, 1e-300}, {3, INFINITY}};
  EXPECT_EQ(val_losses_from_text(to_text(losses)), losses);
  EXPECT_TRUE(std::isnan(val_losses_from_text(to_text({{1, NAN}}))[0].loss));
  EXPECT_TRUE(val_losses_from_text("").empty());
}

}  // namespace
}  // namespace tokamak
