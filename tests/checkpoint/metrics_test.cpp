#include "checkpoint/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using nlohmann::json;

StepMetrics metrics_of(int64_t step) {
  return {.step = step,
          .loss = 4.5,
          .grad_norm = 0.5,
          .lr = 6e-4,
          .ms = 512,
          .tokens_per_second = 8000,
          .model_gflops = 212,
          .mfu = 0.75,
          .data_wait_ms = 0.25,
          .wall_seconds = 1.5e9};
}

std::vector<int64_t> steps_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<int64_t> steps;
  for (std::string line; std::getline(file, line);) steps.push_back(json::parse(line)["step"]);
  return steps;
}

TEST(Metrics, OneObjectALine) {
  StepMetrics metrics = metrics_of(3);
  EXPECT_EQ(format_metrics(metrics),
            R"({"step":3,"loss":4.5,"grad_norm":0.5,"lr":0.0006,"ms":512.0,"tokens_per_second":8000.0,)"
            R"("model_gflops":212.0,"mfu":0.75,"data_wait_ms":0.25,"wall_seconds":1500000000.0})");
  metrics.val_loss = 4.75;
  EXPECT_EQ(json::parse(format_metrics(metrics))["val_loss"], 4.75);
}

TEST(Metrics, NumbersOfTasksAndMemory) {
  StepMetrics metrics = metrics_of(3);
  metrics.tasks = {{"hellaswag", "accuracy", 0.25}, {"hellaswag", "centred", 0}, {"book", "bits_per_byte", 1.5}};
  metrics.memory_mib = 12.34;
  json parsed = json::parse(format_metrics(metrics));
  EXPECT_EQ(parsed["tasks"].dump(), R"({"book":{"bits_per_byte":1.5},"hellaswag":{"accuracy":0.25,"centred":0.0}})");
  EXPECT_EQ(parsed["memory_mib"], 12.3);
}

TEST(Metrics, LossScaleAndSkippedStepsOfFp16) {
  StepMetrics metrics = metrics_of(3);
  metrics.loss_scale = 65536;
  metrics.skipped = 2;
  json parsed = json::parse(format_metrics(metrics));
  EXPECT_EQ(parsed["loss_scale"], 65536);
  EXPECT_EQ(parsed["skipped"], 2);
}

TEST(Metrics, TellWhatAStepTakesOnceItIsWarm) {
  TemporaryFolder folder;
  std::ofstream file(folder / "metrics.jsonl");
  for (int step = 1; step <= 15; ++step)
    file << R"({"step":)" << step << R"(,"ms":)" << (step <= 5 ? 900 : step == 9 ? 4000 : 100 + step) << "}\n";
  file << R"({"step":16,"ms":)";
  file.close();
  EXPECT_DOUBLE_EQ(usual_step_seconds(folder / "metrics.jsonl"), 0.112) << "106 to 115, one of which waited";
  std::ofstream(folder / "few.jsonl") << R"({"step":1,"ms":900})"
                                      << "\n";
  expect_user_error([&] { usual_step_seconds(folder / "few.jsonl"); }, {"expected 12 steps or more", "got 1"});
}

TEST(Metrics, SaysWhatWasNotApplied) {
  StepMetrics metrics = metrics_of(3);
  EXPECT_FALSE(json::parse(format_metrics(metrics)).contains("applied"));
  metrics.applied = false;
  EXPECT_EQ(json::parse(format_metrics(metrics))["applied"], false);
}

TEST(Metrics, KeepsEveryBitOfTheLoss) {
  StepMetrics metrics = metrics_of(1);
  metrics.loss = double(4.1234567f);
  EXPECT_EQ(float(json::parse(format_metrics(metrics))["loss"].get<double>()), 4.1234567f);
}

TEST(Metrics, WhatIsNotFiniteIsNull) {
  StepMetrics metrics = metrics_of(1);
  metrics.loss = NAN;
  metrics.grad_norm = INFINITY;
  json parsed = json::parse(format_metrics(metrics));
  EXPECT_TRUE(parsed["loss"].is_null());
  EXPECT_TRUE(parsed["grad_norm"].is_null());
}

TEST(Metrics, LinesAreThereAtOnce) {
  TemporaryFolder folder;
  MetricsWriter writer(folder / "m", {});
  for (int64_t step = 1; step <= 3; ++step) {
    writer.write(metrics_of(step));
    EXPECT_EQ(int64_t(steps_in(folder / "m").size()), step);
  }
}

TEST(Metrics, AFreshRunStartsEmpty) {
  TemporaryFolder folder;
  { MetricsWriter(folder / "m", {}).write(metrics_of(1)); }
  { MetricsWriter(folder / "m", {}).write(metrics_of(2)); }
  EXPECT_EQ(steps_in(folder / "m"), std::vector<int64_t>{2});
}

TEST(Metrics, AfterResumeEachStepAppearsOnce) {
  TemporaryFolder folder;
  {
    MetricsWriter writer(folder / "m", {});
    for (int64_t step = 1; step <= 7; ++step) writer.write(metrics_of(step));
  }
  {
    MetricsWriter writer(folder / "m", 5);
    for (int64_t step = 6; step <= 8; ++step) writer.write(metrics_of(step));
  }
  EXPECT_EQ(steps_in(folder / "m"), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Metrics, ResumeDropsATornLastLineAndKeepsOthersLines) {
  TemporaryFolder folder;
  std::string whole = format_metrics(metrics_of(1)) + "\n{\"note\":\"mine\"}\n";
  write_file_atomic(folder / "m", whole + format_metrics(metrics_of(2)).substr(0, 20));
  { MetricsWriter writer(folder / "m", 2); }
  EXPECT_EQ(read_file(folder / "m"), whole);
}

TEST(Metrics, TellTheValidationLossesUpToTheResumedStep) {
  TemporaryFolder folder;
  {
    MetricsWriter writer(folder / "m", {});
    for (int64_t step = 1; step <= 6; ++step) {
      StepMetrics metrics = metrics_of(step);
      if (step % 2 == 0) metrics.val_loss = 0.1 * double(step);
      writer.write(metrics);
    }
    EXPECT_TRUE(writer.val_losses().empty());
  }
  EXPECT_EQ(MetricsWriter(folder / "m", 5).val_losses(), (ValLosses{{2, 0.2}, {4, 0.4}}));
  write_file_atomic(folder / "m", R"({"step":1,"val_loss":null})"
                                  "\n");
  EXPECT_TRUE(std::isnan(MetricsWriter(folder / "m", 1).val_losses().at(0).loss)) << "what was no number";
}

TEST(Metrics, ALastLineWithoutItsValidationLossTakesIt) {
  TemporaryFolder folder;
  auto line = [](int64_t step) { return format_metrics(metrics_of(step)) + "\n"; };
  write_file_atomic(folder / "m", line(1) + line(2) + line(3));
  {
    MetricsWriter writer(folder / "m", 2);
    ASSERT_TRUE(writer.can_take_val_loss());
    writer.add_val_loss(4.75);
    EXPECT_FALSE(writer.can_take_val_loss());
    writer.write(metrics_of(3));
  }
  EXPECT_EQ(steps_in(folder / "m"), (std::vector<int64_t>{1, 2, 3}));
  std::string text = read_file(folder / "m");
  EXPECT_EQ(json::parse(text.substr(line(1).size(), text.find('\n', line(1).size()) - line(1).size()))["val_loss"],
            4.75);
  EXPECT_FALSE(MetricsWriter(folder / "m", 2).can_take_val_loss()) << "it has one";
  {
    MetricsWriter writer(folder / "m", 2);
    writer.write(metrics_of(3));
  }
  MetricsWriter behind(folder / "m", 4);
  EXPECT_FALSE(behind.can_take_val_loss()) << "there is no line of step 4";
}

TEST(Metrics, AStepThatNoRunReachesIsNoneOfOurs) {
  TemporaryFolder folder;
  std::string lines = R"({"step":9223372036854775807})"
                      "\n"
                      R"({"step":-1})"
                      "\n";
  write_file_atomic(folder / "m", lines);
  MetricsWriter writer(folder / "m", 2);
  EXPECT_EQ(writer.reached(), 0);
  EXPECT_EQ(read_file(folder / "m"), lines);
}

TEST(Metrics, DamagedLinesAreNamedAndSetAside) {
  TemporaryFolder folder;
  auto line = [](int64_t step) { return format_metrics(metrics_of(step)) + "\n"; };
  std::string torn = line(3).substr(0, 30) + "\n";
  write_file_atomic(folder / "m", line(1) + line(2) + torn + line(4) + line(2) + line(7) + line(8));
  MetricsWriter writer(folder / "m", 7);
  EXPECT_EQ(read_file(folder / "m"), line(1) + line(2) + line(4) + line(7));
  EXPECT_EQ(read_file(folder / "m.damaged"), torn + line(2));
  for (const char* piece :
       {"2 damaged or repeated lines are set aside in m.damaged", "of 3 steps", "first of them step 3"})
    EXPECT_NE(writer.warning().find(piece), std::string::npos) << writer.warning();
  MetricsWriter again(folder / "m", 2);
  EXPECT_EQ(again.warning(), "");
}

TEST(Metrics, ResumeWithoutAFile) {
  TemporaryFolder folder;
  { MetricsWriter(folder / "m", 5).write(metrics_of(6)); }
  EXPECT_EQ(steps_in(folder / "m"), std::vector<int64_t>{6});
}

TEST(Metrics, NoFolder) {
  TemporaryFolder folder;
  expect_user_error([&] { MetricsWriter writer(folder / "none/m", {}); }, {"none/m", "check the path"});
}

}  // namespace
}  // namespace tokamak
