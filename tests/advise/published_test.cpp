#include "advise/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "advise/format_published.h"
#include "backend/cuda/cuda_backend.h"

namespace tokamak {
namespace {

std::vector<PublishedRun> runs_that(const std::function<bool(const PublishedRun&)>& wanted) {
  std::vector<PublishedRun> runs;
  std::ranges::copy_if(published_runs(), std::back_inserter(runs), wanted);
  return runs;
}

std::vector<PublishedRun> runs_of(std::string_view source, std::string_view name) {
  return runs_that([&](const PublishedRun& run) { return run.source->name == source && run.name.starts_with(name); });
}

TEST(Published, EveryRunSaysWhereItIsFrom) {
  std::set<std::string> names;
  for (const PublishedRun& run : published_runs()) {
    EXPECT_TRUE(names.insert(std::string(run.source->name) + ": " + std::string(run.name)).second) << run.name;
    EXPECT_FALSE(run.source->where.empty()) << run.name;
    EXPECT_NE(run.rate > 0, run.seconds > 0) << run.name << ": one of them is published";
    EXPECT_GT(published_cluster(run.cluster).gpu.half_flops.value, 0) << run.name;
  }
  EXPECT_GE(names.size(), 60u);
}

// In closed form; nothing of it is fitted to these rows.
TEST(Published, RunsWithAttentionMatricesAreWithinTenPercentOnAverage) {
  std::vector<PublishedRun> runs = runs_that([](const PublishedRun& run) { return run.software->matrices; });
  ASSERT_GE(runs.size(), 10u);
  std::vector<PublishedPrediction> predictions = predict_published(runs, platform_of_rates);
  PublishedErrors errors = errors_of(predictions, *runs[0].software);
  EXPECT_EQ(errors.runs, int64_t(runs.size()));
  EXPECT_LT(errors.size, 0.1);
  EXPECT_LT(std::abs(errors.worst), 0.2);
  auto bloom = std::ranges::find_if(predictions, [](const PublishedPrediction& one) {
    return one.run->name == "181B, 384 A100: d 8, t 4, p 12, 2 a rank";
  });
  ASSERT_NE(bloom, predictions.end());
  EXPECT_EQ(bloom->published, 110.48);
  EXPECT_LT(std::abs(bloom->error()), 0.05);
  EXPECT_EQ(bloom->layout, "pipe 12 x data 8 x tensor 4, 1f1b, ZeRO 1, micro-batch 2 x 128");
}

// As plan has it; without CUDA kernels are taken for granted.
Platform platform_of(const GpuConfig& gpu) {
  return cuda::is_built() ? cuda::nominal_platform(gpu) : platform_of_rates(gpu);
}

// Of each kind of software, over all rows that count.
TEST(Published, EveryKindOfSoftwareIsWithinTenPercentOnAverage) {
  std::vector<PublishedPrediction> predictions = predict_published(published_runs(), platform_of);
  std::map<std::string_view, const Software*> kinds;
  for (const PublishedRun& run : published_runs()) kinds[run.software->name] = run.software;
  ASSERT_EQ(kinds.size(), 8u);
  for (auto [name, software] : kinds) {
    PublishedErrors errors = errors_of(predictions, *software);
    EXPECT_GE(errors.runs, 4) << name;
    EXPECT_LT(errors.size, 0.1) << name;
    EXPECT_LT(std::abs(errors.worst), 0.2) << name;
  }
}

// 128 A100 with 400 Gb/s a node, where what is sent takes few multiprocessors.
TEST(Published, SlowLinksOfA100sAreWithinTenPercent) {
  std::vector<PublishedRun> runs =
      runs_that([](const PublishedRun& run) { return run.cluster == "vela-a100" && run.apart.empty(); });
  ASSERT_EQ(runs.size(), 6u);
  if (!cuda::is_built()) GTEST_SKIP() << "built without CUDA, whose kernels a step is compiled for";
  for (const PublishedPrediction& one : predict_published(runs, platform_of))
    EXPECT_LT(std::abs(one.error()), 0.1) << one.run->name;
}

// Some that compile little.
TEST(Published, PlannedRunsAreWithinTwentyPercent) {
  for (auto [source, name] : {std::pair("llm.c", "124M"), std::pair("flash-attention", "1.3B"),
                              std::pair("MPT", "1b, T=32768"), std::pair("zero bubble", "6.2B, 8 A100, 3 x 24, 1f1b"),
                              std::pair("torchtitan", "Llama 3.1 8B, 8 H100, 2 a GPU")}) {
    std::vector<PublishedRun> runs = runs_of(source, name);
    ASSERT_GE(runs.size(), 1u) << name;
    PublishedPrediction one = predict_published(runs[0], platform_of_rates);
    EXPECT_LT(std::abs(one.error()), 0.2) << name << ": " << one.predicted << " for " << one.published;
  }
}

// What an eager program with the first flash attention did otherwise takes half of this one's time.
TEST(Published, WhatTheSoftwareDidOtherwiseCounts) {
  std::vector<PublishedRun> runs = runs_of("MPT", "1b, T=32768");
  ASSERT_EQ(runs.size(), 1u);
  PublishedRun as_ours = runs[0];
  as_ours.software = runs_of("llm.c", "124M")[0].software;
  double theirs = predict_published(runs[0], platform_of_rates).predicted;
  EXPECT_GT(theirs, 1.7 * predict_published(as_ours, platform_of_rates).predicted);
}

// What a run of 124M takes with software that differs from ours in one thing.
double seconds_with(const Software& software, const ComputedAgain& again = {}, std::string_view cluster = "dgx-a100") {
  PublishedRun run = runs_of("llm.c", "124M")[0];
  run.software = &software, run.again = again, run.cluster = cluster;
  return predict_published(run, platform_of_rates).predicted;
}

TEST(Published, WhatIsComputedAgainTakesItsShare) {
  Software ours{"test", "as ours"};
  double once = seconds_with(ours), products = seconds_with(ours, {.products = 1}) - once;
  EXPECT_GT(products, 0.1 * once);
  EXPECT_LT(products, 0.3 * once) << "a third of the products";
  EXPECT_NEAR(seconds_with(ours, {.products = 0.5}) - once, products / 2, 1e-9);
  double attention = seconds_with(ours, {.attention = 1}) - once;
  EXPECT_GT(attention, 0.01 * once);
  EXPECT_LT(attention, products);
  double bandwidth = platform_of_rates(published_cluster("dgx-a100").gpu).target.memory_bandwidth;
  double elements = 524288 / 8.0 * 12 * 768;
  EXPECT_NEAR(seconds_with(ours, {.bytes = 100}) - once, 100 * elements / bandwidth, 1e-9);
}

TEST(Published, CopiesOfParametersCount) {
  Software ours{"test", "as ours"}, copies = ours;
  copies.parameter_bytes = 14;
  double bandwidth = platform_of_rates(published_cluster("dgx-a100").gpu).target.memory_bandwidth;
  EXPECT_NEAR(seconds_with(copies) - seconds_with(ours), 14 * 124439808 / bandwidth, 1e-9) << "of one micro-batch";
}

// A GPU at 500 of 700 W has less attention, too.
TEST(Published, AttentionGoesWithTheClock) {
  Software ours{"test", "as ours"}, slower = ours;
  slower.attention_hopper = 0.24;
  auto more = [&](std::string_view cluster) {
    return seconds_with(slower, {}, cluster) - seconds_with(ours, {}, cluster);
  };
  EXPECT_NEAR(more("grand-teton") / more("dgx-h100"), std::cbrt(700.0 / 500), 0.01);
}

// Stages wait for the last one, which has the logits, so these are of no share.
TEST(Published, LogitsAreOfOneStage) {
  PublishedRun run = runs_of("zero bubble", "6.2B, 8 A100, 3 x 24, 1f1b")[0], more = run;
  Software software = *run.software, with = software;
  with.logit_bytes += 100;
  run.software = &software, more.software = &with;
  double bandwidth = platform_of_rates(published_cluster("dgx-a100").gpu).target.memory_bandwidth;
  double bytes = 100 * 73728.0 * 32000;
  EXPECT_GT(predict_published(more, platform_of_rates).predicted - predict_published(run, platform_of_rates).predicted,
            bytes / bandwidth);
}

TEST(Published, RowsThatStandApartCountInNoMean) {
  Software software{"test", "a test"};
  PublishedSource source{"someone", "somewhere", false};
  PublishedRun run{&source, &software, "one", "h200"}, apart = run;
  apart.apart = "a reason";
  std::vector<PublishedPrediction> predictions = {
      {&run, 1, 1.1, "data 8", 0}, {&run, 1, 0.8, "data 8", 1 << 30}, {&apart, 1, 3, "data 8", 0}};
  PublishedErrors errors = errors_of(predictions, software);
  EXPECT_EQ(errors.runs, 2);
  EXPECT_NEAR(errors.size, 0.15, 1e-12);
  EXPECT_NEAR(errors.mean, -0.05, 1e-12);
  EXPECT_NEAR(errors.worst, -0.2, 1e-12);
  std::string text = format_published(predictions);
  for (const char* piece : {"of 2 runs: mean absolute error 15.0%, mean -5.0%, worst -20.0%",
                            "counts in no mean: a reason", "needs 1.00 GiB more", "somewhere (read in a transcription"})
    EXPECT_NE(text.find(piece), text.npos) << piece << "\n" << text;
  std::string json = published_json(predictions);
  EXPECT_NE(json.find("\"mean_absolute_error\":0.15"), json.npos) << json;
}

}  // namespace
}  // namespace tokamak
