// What is told of steps, and when training is at its end.
#include "run/step_reporter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "config/config.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Listener : public TrainObserver {
 public:
  void message(const std::string& text) override { messages.push_back(text); }
  void step(const StepMetrics& metrics, int64_t, double eta_seconds) override {
    steps.push_back(metrics);
    eta = eta_seconds;
  }
  void progress(int64_t step, int64_t, double) override { progressed.push_back(step); }
  void sample(int64_t, const std::string&) override {}
  void saved(int64_t, const std::filesystem::path&) override {}

  std::vector<std::string> messages;
  std::vector<StepMetrics> steps;
  std::vector<int64_t> progressed;
  double eta = 0;
};

class Reporter : public testing::Test {
 protected:
  Reporter() {
    config_.train = {.out = folder_.path().string(), .steps = 10, .log_every = 2};
    reporter_.emplace(config_, StepWork{.tokens = 500, .flops = {.full = 4e6, .causal = 3e6}, .peak = 8e9}, 0,
                      listener_);
  }

  std::string file() const { return read_file(folder_ / "metrics.jsonl"); }

  TemporaryFolder folder_;
  RunConfig config_;
  Listener listener_;
  std::optional<StepReporter> reporter_;
};

TEST_F(Reporter, AddsRates) {
  reporter_->report({.step = 2, .loss = 3, .ms = 500});
  ASSERT_EQ(listener_.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(listener_.steps[0].tokens_per_second, 1000);
  EXPECT_DOUBLE_EQ(listener_.steps[0].model_gflops, 4);
  EXPECT_DOUBLE_EQ(listener_.steps[0].mfu, 0.5);
  EXPECT_DOUBLE_EQ(listener_.eta, 8 * 0.5);
}

TEST_F(Reporter, WritesEveryStepAndShowsSome) {
  for (int64_t step : {1, 2, 3}) reporter_->report({.step = step, .loss = 3, .ms = 1});
  reporter_->report({.step = 5, .loss = 3, .ms = 1, .val_loss = 4.0});
  std::string text = file();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  ASSERT_EQ(listener_.steps.size(), 2u);
  EXPECT_EQ(listener_.steps[0].step, 2);
  EXPECT_EQ(listener_.steps[1].step, 5) << "it was evaluated";
}

TEST_F(Reporter, CompletesTheLineOfAStepWithTasks) {
  StepMetrics metrics{.step = 1, .loss = 3, .ms = 1};
  reporter_->record(metrics);
  reporter_->add_val_loss(metrics, 4);
  reporter_->add_tasks(metrics, {{"hellaswag", "accuracy", 0.25}});
  std::string text = file();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.find("\"val_loss\":4.0,\"tasks\":{\"hellaswag\":{\"accuracy\":0.25}}"), std::string::npos) << text;
  EXPECT_NE(text.find("\"memory_mib\":"), std::string::npos) << "of the first step of a second";
}

TEST_F(Reporter, KeepsSamples) {
  reporter_->add_sample(2, "a \"text\"\n\xff");
  reporter_->add_sample(4, "more");
  std::string text = read_file(folder_ / "samples.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find("\"text\":\"a \\\"text\\\"\\n"), std::string::npos) << text;
  StepReporter going_on(config_, StepWork{.tokens = 1}, 4, listener_);
  EXPECT_EQ(read_file(folder_ / "samples.jsonl"), text);
  StepReporter anew(config_, StepWork{.tokens = 1}, 0, listener_);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "samples.jsonl"));
}

TEST_F(Reporter, WritesForTensorBoardWhereThatIsAskedFor) {
  EXPECT_FALSE(std::filesystem::exists(folder_ / "tensorboard"));
  config_.train.tensorboard = true;
  StepReporter reporter(config_, StepWork{.tokens = 500}, 0, listener_);
  reporter.report({.step = 1, .loss = 3, .ms = 1});
  std::filesystem::path written = std::filesystem::directory_iterator(folder_ / "tensorboard")->path();
  std::string text = read_file(written);
  for (const char* tag : {"train/loss", "speed/tokens_per_second", "config"})
    EXPECT_NE(text.find(tag), std::string::npos) << tag;
}

TEST_F(Reporter, TellsOfMeansSinceTheLastLineAndOfEveryStep) {
  for (int64_t step : {1, 2, 3, 4})
    reporter_->report({.step = step, .loss = double(step), .grad_norm = 1, .ms = 100.0 * double(step)});
  EXPECT_EQ(listener_.progressed, (std::vector<int64_t>{1, 2, 3, 4}));
  ASSERT_EQ(listener_.steps.size(), 2u);
  EXPECT_EQ(listener_.steps[1].steps, 2);
  EXPECT_DOUBLE_EQ(listener_.steps[1].loss, 3.5);
  EXPECT_DOUBLE_EQ(listener_.steps[1].ms, 350);
  EXPECT_DOUBLE_EQ(listener_.steps[1].tokens_per_second, 500 / 0.35);
  EXPECT_NE(file().find("\"loss\":3.0"), std::string::npos) << "the file has single steps";
}

// It touches all memory and loads kernels for the first time.
TEST_F(Reporter, TheFirstStepOfAStartSaysNothingOfTheTimeOfOthers) {
  reporter_.emplace(config_, StepWork{.tokens = 500, .flops = {.full = 4e6, .causal = 3e6}, .peak = 8e9}, 2, listener_);
  reporter_->report({.step = 3, .loss = 5, .ms = 4000, .data_wait_ms = 2000});
  reporter_->report({.step = 4, .loss = 3, .ms = 500, .data_wait_ms = 10});
  ASSERT_EQ(listener_.steps.size(), 1u);
  EXPECT_EQ(listener_.steps[0].steps, 2);
  EXPECT_DOUBLE_EQ(listener_.steps[0].loss, 4);
  EXPECT_DOUBLE_EQ(listener_.steps[0].ms, 500);
  EXPECT_DOUBLE_EQ(listener_.steps[0].data_wait_ms, 10);
  EXPECT_DOUBLE_EQ(listener_.steps[0].tokens_per_second, 1000);
  EXPECT_DOUBLE_EQ(listener_.steps[0].mfu, 0.5);
  EXPECT_DOUBLE_EQ(listener_.eta, 6 * 0.5);
  for (int64_t step : {5, 6}) reporter_->report({.step = step, .loss = 3, .ms = step == 5 ? 100.0 : 300.0});
  EXPECT_DOUBLE_EQ(listener_.steps[1].ms, 200) << "of all later ones";
}

TEST_F(Reporter, MeansLeaveOutWhatOverflowed) {
  reporter_->report({.step = 1,
                     .loss = kInfinity,
                     .grad_norm = kInfinity,
                     .applied = false,
                     .ms = 1,
                     .loss_scale = 8.0,
                     .skipped = 1});
  reporter_->report({.step = 2, .loss = 3, .grad_norm = 2, .ms = 1, .loss_scale = 4.0, .skipped = 1});
  ASSERT_EQ(listener_.steps.size(), 1u);
  EXPECT_EQ(listener_.steps[0].loss, 3);
  EXPECT_EQ(listener_.steps[0].grad_norm, 2);
}

// The outline names the peak, so it is the same for all steps, also where one reaches more.
TEST_F(Reporter, ComparesEveryStepWithThePeakThatWasTold) {
  reporter_->report({.step = 2, .loss = 3, .ms = 100});
  reporter_->report({.step = 4, .loss = 3, .ms = 500});
  EXPECT_DOUBLE_EQ(listener_.steps[0].mfu, 2.5);
  EXPECT_DOUBLE_EQ(listener_.steps[1].mfu, 0.5);
}

TEST_F(Reporter, CountsWaitingForDataWhenBatchesAreMadeAhead) {
  for (int64_t step = 1; step <= 10; ++step) {
    reporter_->report({.step = step, .loss = 3, .ms = 100, .data_wait_ms = 100});
    EXPECT_EQ(reporter_->data_wait(), 0);
  }
  reporter_->report({.step = 11, .loss = 3, .ms = 30, .data_wait_ms = 3});
  reporter_->report({.step = 12, .loss = 3, .ms = 10, .data_wait_ms = 1});
  EXPECT_DOUBLE_EQ(reporter_->data_wait(), 0.1);
}

TEST_F(Reporter, EndsTrainingThatHasDiverged) {
  expect_user_error([&] { reporter_->report({.step = 1, .loss = kInfinity, .ms = 1}); },
                    {"[train] the loss of step 1 is inf", "training has diverged",
                     "has no checkpoint, so the same command begins anew", folder_.path().string()});
  EXPECT_NE(file().find("\"step\":1"), std::string::npos) << "the step is written down all the same";
}

TEST_F(Reporter, WarnsOfStepsThatWereNotApplied) {
  StepMetrics skipped{.step = 1, .loss = 3, .grad_norm = kInfinity, .applied = false, .ms = 1};
  reporter_->report(skipped);
  ASSERT_EQ(listener_.messages.size(), 1u);
  EXPECT_NE(listener_.messages[0].find("the step changed nothing"), std::string::npos);
  EXPECT_NE(file().find("\"applied\":false"), std::string::npos);
}

TEST_F(Reporter, EndsTrainingThatAppliesNothingAnyMore) {
  StepMetrics skipped{.step = 1, .loss = 3, .grad_norm = kInfinity, .applied = false, .ms = 1};
  for (; skipped.step < 20; ++skipped.step) reporter_->report(skipped);
  reporter_->report({.step = 20, .loss = 3, .grad_norm = 1, .ms = 1});
  for (skipped.step = 21; skipped.step < 40; ++skipped.step) reporter_->report(skipped);
  std::filesystem::create_directories(checkpoints_folder(folder_.path()) / checkpoint_name(30));
  expect_user_error([&] { reporter_->report(skipped); }, {"got none in the 20 steps up to 40", "training has diverged",
                                                          "--optimizer.lr", "has only the checkpoint of step 30"});
}

TEST_F(Reporter, LetsLossScalingSkipStepsUntilTheScaleIsNothing) {
  StepMetrics skipped{
      .step = 1, .loss = kInfinity, .grad_norm = kInfinity, .applied = false, .ms = 1, .loss_scale = 1.0, .skipped = 1};
  reporter_->report(skipped);
  skipped.loss_scale = 1e-5;
  expect_user_error([&] { reporter_->report(skipped); }, {"an overflow even at a loss scale of 1.0e-05"});
}

}  // namespace
}  // namespace tokamak
