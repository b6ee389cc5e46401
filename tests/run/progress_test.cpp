#include "run/progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace tokamak {
namespace {

TEST(GraceWarning, WhereAStepAndASaveTakeLonger) {
  EXPECT_EQ(grace_warning(30, 20, 9, true), "");
  EXPECT_NE(grace_warning(30, 20, 11, true).find("takes 31s, more than the 30s"), std::string::npos);
  EXPECT_EQ(grace_warning(30, 200, 14, false), "") << "one rank gives a long step up";
  EXPECT_NE(grace_warning(30, 200, 16, false), "");
  EXPECT_EQ(grace_warning(0, 200, 16, true), "");
  EXPECT_EQ(grace_warning(30, 200, 0, true), "") << "nothing was saved yet";
}

const StepMetrics kMetrics = {.step = 120,
                              .loss = 4.12341,
                              .grad_norm = 0.981,
                              .lr = 5.9e-4,
                              .ms = 512.3,
                              .tokens_per_second = 7996,
                              .model_gflops = 212.4,
                              .mfu = 0.708};

TEST(StepLine, SaysWhatFits) {
  EXPECT_EQ(format_step_line(kMetrics, 1000, 452),
            "step   120/1000 | loss 4.1234 | norm 0.98 | lr 5.9e-04 | 8.0k tok/s | ETA 7m32s");
}

TEST(StepLine, HasEverythingInAFile) {
  EXPECT_EQ(format_step_line(kMetrics, 1000, 452, kAnyWidth),
            "step   120/1000 | loss 4.1234 | norm 0.98 | lr 5.9e-04 | 512 ms | 8.0k tok/s | 71% MFU | ETA 7m32s");
}

TEST(StepLine, HasAtMost80Columns) {
  StepMetrics metrics = kMetrics;
  metrics.step = 100'000'000;
  metrics.steps = 1000;
  metrics.val_loss = 12.3456;
  metrics.loss_scale = 65536;
  metrics.skipped = 1000;
  metrics.data_wait_ms = 400;
  for (double eta : {-1.0, 5.0, 86400.0 * 300}) {
    std::string line = format_step_line(metrics, 200'000'000, eta);
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_NE(line.find("loss 4.1234 | val 12.3456 | norm 0.98"), std::string::npos) << line;
  }
}

// As in a log of a long run.
TEST(StepLine, KeepsNormAndDataWaitOfMeans) {
  StepMetrics metrics = kMetrics;
  metrics.step = 12'345;
  metrics.steps = 25;
  EXPECT_EQ(format_step_line(metrics, 100'000, 452),
            "step   12345/100000 | mean loss 4.1234 | norm 0.98 | lr 5.9e-04 | 8.0k tok/s");
  metrics.data_wait_ms = 100;
  EXPECT_EQ(format_step_line(metrics, 100'000, 452),
            "step   12345/100000 | mean loss 4.1234 | norm 0.98 | data wait 20% | 8.0k tok/s");
}

TEST(StepLine, SaysThatNumbersAreMeans) {
  StepMetrics metrics = kMetrics;
  metrics.steps = 25;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| mean loss 4.1234 | norm 0.98 |"), std::string::npos);
}

TEST(StepLine, WhatIsNoNumberHasNoSign) {
  StepMetrics metrics = kMetrics;
  metrics.grad_norm = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| norm nan |"), std::string::npos);
  metrics.applied = false;
  EXPECT_NE(skipped_warning(metrics).find("(norm nan)"), std::string::npos);
}

TEST(StepLine, HugeNumbersAreShort) {
  StepMetrics metrics = kMetrics;
  metrics.loss = 5.1517e21;
  metrics.grad_norm = std::numeric_limits<double>::infinity();
  std::string line = format_step_line(metrics, 1000, 1);
  EXPECT_NE(line.find("| loss 5.1517e+21 |"), std::string::npos) << line;
  EXPECT_NE(line.find("| norm inf |"), std::string::npos) << line;
}

TEST(Outline, SaysWhatIsTrainedAndWhereItIsSaved) {
  RunOutline outline = {.parameters = 2'200'000,
                        .precision = "bf16",
                        .memory_bytes = int64_t(3) << 29,
                        .done = 400,
                        .steps = 1200,
                        .step_tokens = 2048,
                        .tokens = 800 * 2048,
                        .epoch_tokens = 1'000'000,
                        .step_seconds = 0.0261,
                        .seconds = 800 * 0.0261,
                        .dollars_per_hour = 12.7,
                        .priced_as = "h200",
                        .out = "run",
                        .checkpoint_every = 400,
                        .peak = "2 x 989 TFLOP/s (H200 datasheet, bf16 dense)"};
  EXPECT_EQ(format_outline(outline),
            "2.2M parameters in bf16, 1.50 GiB of memory planned\n"
            "steps 401 to 1200 of 2048 tokens: 1.6M tokens, 1.64 epochs of 1.0M\n"
            "predicted: a step of 26.1 ms, all of them 21s, $0.07 at $12.70 an hour (as of h200 in `tokamak plan "
            "--clusters`)\n"
            "MFU is the share of 2 x 989 TFLOP/s (H200 datasheet, bf16 dense)\n"
            "saved every 400 steps and at the end in run");
  outline.memory_bytes = int64_t(210) << 20;
  EXPECT_NE(format_outline(outline).find("bf16, 210 MiB of memory"), std::string::npos);
  outline.dollars_per_hour = 0;
  outline.step_seconds = 75;
  EXPECT_NE(format_outline(outline).find("\npredicted: a step of 1m15s, all of them 21s\nMFU"), std::string::npos);
  outline.checkpoint_every = 0;
  EXPECT_NE(format_outline(outline).find("saved at the end in run"), std::string::npos);
  outline.tokens = 1e6;
  EXPECT_NE(format_outline(outline).find("to 1200 of up to 2048 tokens: 1.0M tokens, 1 epochs"), std::string::npos);
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
  metrics.mfu = 0;
  EXPECT_TRUE(format_step_line(metrics, 1000, -1).ends_with("| lr 5.9e-04 | 512 ms | 8.0k tok/s"));
}

TEST(StepLine, TellsTheLearningRateRatherThanTheTime) {
  StepMetrics metrics = kMetrics;
  metrics.mfu = 0;
  EXPECT_EQ(format_step_line(metrics, 1000, 452),
            "step   120/1000 | loss 4.1234 | norm 0.98 | lr 5.9e-04 | 8.0k tok/s | ETA 7m32s");
  metrics.lr = 0;
  EXPECT_EQ(format_step_line(metrics, 1000, 452),
            "step   120/1000 | loss 4.1234 | norm 0.98 | 512 ms | 8.0k tok/s | ETA 7m32s");
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
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| norm 0.98 | scale 65536 | "), std::string::npos);
  metrics.skipped = 3;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| scale 65536 | 3 skipped | "), std::string::npos);
}

TEST(StepLine, UnitsFollowTheSize) {
  StepMetrics metrics = kMetrics;
  metrics.mfu = 0;
  metrics.lr = 0;
  metrics.ms = 3.214;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| 3.21 ms | 8.0k tok/s | "), std::string::npos);
  metrics.ms = 12345;
  EXPECT_NE(format_step_line(metrics, 1000, 1).find("| 12.3 s | 8.0k tok/s | "), std::string::npos);
}

TEST(ProgressBar, FillsTheWidth) {
  EXPECT_EQ(format_progress_bar(120, 1000, 452, 60), " 12% [===>                            ] 120/1000 | ETA 7m32s");
}

TEST(ProgressBar, IsExactlyAsWideAsTheTerminal) {
  for (int64_t step : {0, 1, 500, 999, 1000, 2000})
    for (int width = 0; width < 200; ++width) {
      std::string line = format_progress_bar(step, 1000, 452, width);
      EXPECT_EQ(int(line.size()), width);
    }
}

TEST(ProgressBar, NarrowTerminalsLoseTheBarFirst) {
  std::string line = format_progress_bar(120, 1000, 452, 30);
  EXPECT_EQ(line.find('['), std::string::npos);
  EXPECT_NE(line.find("ETA 7m32s"), std::string::npos);
}

TEST(ProgressBar, IsFullAtTheEndAndNotBefore) {
  EXPECT_NE(format_progress_bar(1000, 1000, 0, 80).find("100% [="), std::string::npos);
  EXPECT_EQ(format_progress_bar(1000, 1000, 0, 80).find('>'), std::string::npos);
  EXPECT_NE(format_progress_bar(9999, 10000, 1, 80).find(" 99% ["), std::string::npos);
  EXPECT_NE(format_progress_bar(9999, 10000, 1, 80).find('>'), std::string::npos);
}

TEST(SkippedWarning, IsOfStepsThatWereNotAppliedWithoutLossScaling) {
  StepMetrics metrics{.step = 12, .grad_norm = std::numeric_limits<double>::infinity(), .applied = false};
  std::string warning = skipped_warning(metrics);
  for (const char* piece : {"step 12", "norm inf", "changed nothing", "--optimizer.lr"})
    EXPECT_NE(warning.find(piece), std::string::npos) << warning;
  metrics.loss_scale = 1024;
  EXPECT_EQ(skipped_warning(metrics), "");
  EXPECT_EQ(skipped_warning({.step = 12, .grad_norm = 1e30}), "");
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
