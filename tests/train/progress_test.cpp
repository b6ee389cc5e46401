#include "train/progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace tokamak {
namespace {

const StepMetrics kMetrics = {.step = 120,
                              .loss = 4.12341,
                              .grad_norm = 0.981,
                              .lr = 5.9e-4,
                              .ms = 512.3,
                              .tokens_per_second = 7996,
                              .gflops = 212.4,
                              .percent_of_peak = 70.8};

TEST(StepLine, SaysEverything) {
  EXPECT_EQ(
      format_step_line(kMetrics, 1000, 452),
      "step   120/1000 | loss 4.1234 | norm 0.98 | lr 5.9e-04 | 512 ms | 8.0k tok/s | 212 GFLOP/s (71% of peak) | "
      "ETA 7m32s");
}

TEST(StepLine, StepsStandInAColumn) {
  StepMetrics metrics = kMetrics;
  size_t bar = format_step_line(metrics, 1000, 1).find('|');
  for (int64_t step : {1, 99, 1000}) {
    metrics.step = step;
    EXPECT_EQ(format_step_line(metrics, 1000, 1).find('|'), bar);
  }
}

TEST(StepLine, WhatIsUnknownIsLeftOut) {
  StepMetrics metrics = kMetrics;
  metrics.percent_of_peak = 0;
  EXPECT_TRUE(format_step_line(metrics, 1000, -1).ends_with("| 212 GFLOP/s"));
}

TEST(StepLine, ValidationFollowsTheLoss) {
  StepMetrics metrics = kMetrics;
  metrics.val_loss = 4.5;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| loss 4.1234 | val 4.5000 | norm"), std::string::npos);
}

TEST(StepLine, LossScaleFollowsTheNorm) {
  StepMetrics metrics = kMetrics;
  metrics.loss_scale = 65536;
  metrics.skipped = 0;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| norm 0.98 | scale 65536 | lr"), std::string::npos);
  metrics.skipped = 3;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| scale 65536 | 3 skipped | lr"), std::string::npos);
}

TEST(StepLine, UnitsFollowTheSize) {
  StepMetrics metrics = kMetrics;
  metrics.ms = 3.214;
  metrics.gflops = 1234;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| 3.21 ms | 8.0k tok/s | 1.2 TFLOP/s"), std::string::npos);
  metrics.ms = 12345;
  metrics.gflops = 0.5;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| 12.3 s | 8.0k tok/s | 0.50 GFLOP/s"), std::string::npos);
}

TEST(ProgressBar, FillsTheWidth) {
  EXPECT_EQ(format_progress_bar(kMetrics, 1000, 452, 80),
            " 12% [===>                     ] 120/1000 | loss 4.1234 | 8.0k tok/s | ETA 7m32s");
}

TEST(ProgressBar, IsExactlyAsWideAsTheTerminal) {
  StepMetrics metrics = kMetrics;
  for (int64_t step : {0, 1, 500, 999, 1000, 2000})
    for (int width = 0; width < 200; ++width) {
      metrics.step = step;
      std::string line = format_progress_bar(metrics, 1000, 452, width);
      EXPECT_EQ(int(line.size()), width);
    }
}

TEST(ProgressBar, NarrowTerminalsLoseTheBarFirst) {
  std::string line = format_progress_bar(kMetrics, 1000, 452, 60);
  EXPECT_EQ(line.find('['), std::string::npos);
  EXPECT_NE(line.find("ETA 7m32s"), std::string::npos);
}

TEST(ProgressBar, IsFullAtTheEndAndNotBefore) {
  StepMetrics metrics = kMetrics;
  metrics.step = 1000;
  EXPECT_NE(format_progress_bar(metrics, 1000, 0, 80).find("100% [="), std::string::npos);
  EXPECT_EQ(format_progress_bar(metrics, 1000, 0, 80).find('>'), std::string::npos);
  metrics.step = 9999;
  EXPECT_NE(format_progress_bar(metrics, 10000, 1, 80).find(" 99% ["), std::string::npos);
  EXPECT_NE(format_progress_bar(metrics, 10000, 1, 80).find('>'), std::string::npos);
}

TEST(OverflowWarning, IsOnlyForStepsThatClippingMadeZero) {
  StepMetrics metrics{.step = 12, .grad_norm = std::numeric_limits<double>::infinity()};
  std::string warning = overflow_warning(metrics, 1);
  for (const char* piece : {"step 12", "optimizer.clip = 1", "changed nothing", "--optimizer.lr"})
    EXPECT_NE(warning.find(piece), std::string::npos) << warning;
  EXPECT_EQ(overflow_warning(metrics, 0), "");  // without clipping the loss tells at the next step
  metrics.loss_scale = 1024;
  EXPECT_EQ(overflow_warning(metrics, 1), "");
  EXPECT_EQ(overflow_warning({.step = 12, .grad_norm = 1e30}, 1), "");
}

TEST(FormatDuration, TwoUnitsAtMost) {
  EXPECT_EQ(format_duration(0.2), "0s");
  EXPECT_EQ(format_duration(45), "45s");
  EXPECT_EQ(format_duration(59.7), "1m00s");
  EXPECT_EQ(format_duration(452), "7m32s");
  EXPECT_EQ(format_duration(3840), "1h04m");
  EXPECT_EQ(format_duration(2 * 86400 + 3 * 3600 + 5), "2d03h");
  EXPECT_EQ(format_duration(1.0 / 0.0), "?");
}

TEST(FormatCount, ThreeDigitsOrSo) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(999.7), "1.0k");
  EXPECT_EQ(format_count(7996), "8.0k");
  EXPECT_EQ(format_count(123456), "123k");
  EXPECT_EQ(format_count(999'600), "1.0M");
  EXPECT_EQ(format_count(1.24e6), "1.2M");
  EXPECT_EQ(format_count(3e15), "3000T");
}

}  // namespace
}  // namespace tokamak
