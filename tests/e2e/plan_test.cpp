// A newcomer's question, answered by one command.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/support/quick_file.h"
#include "tests/support/run_program.h"

namespace tokamak {
namespace {

TEST(Plan, WhichLayoutHowLongAndWhatLimitsIt) {
  TemporaryFolder folder;
  std::vector<std::string> arguments = {"plan", "--model.preset=gpt3-6.7b", "--cluster=h200", "--gpus=4",
                                        "--tokens=10e9"};
  ProgramResult text = run_program(folder.path(), arguments);
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* piece : {"best       ", "tokens/s", "days for 10.00 G tokens", "limited by ",
                            "tokamak train --model.preset=gpt3-6.7b --mesh.data=4"})
    EXPECT_NE(text.out.find(piece), std::string::npos) << piece << "\n" << text.out;
  arguments.insert(arguments.end(), {"--json", "--exact=0"});
  ProgramResult json = run_program(folder.path(), arguments);
  nlohmann::json plan = nlohmann::json::parse(json.out);
  EXPECT_EQ(plan["gpus"], 4);
  EXPECT_EQ(plan["layouts"].size(), 5u);
  double days = plan["layouts"][0]["days"];
  EXPECT_GT(days, 1);
  EXPECT_LT(days, 4);
}

// The folder of a run that trained on a GPU; it is enough that it says so. The same layout is then planned for the time
// that it took.
TEST(Plan, IsCalibratedByARun) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "run");
  std::string metrics;
  for (int step = 1; step <= 30; ++step) metrics += "{\"step\":" + std::to_string(step) + ",\"ms\":110.0}\n";
  write_file_quickly(folder.path() / "run/metrics.jsonl", metrics);
  write_file_quickly(folder.path() / "run/config.json", R"({"device": "cuda", "model": {"preset": "gpt2-124m"},
      "compile": {"precision": "bf16"}, "train": {"batch": 64}})");
  std::vector<std::string> arguments = {
      "plan",      "--model.preset=gpt2-124m", "--gpus=1", "--train.batch=64", "--layouts=1",
      "--exact=0", "--calibrate=run"};
  ProgramResult text = run_program(folder.path(), arguments);
  EXPECT_NE(text.out.find("calibrated by run: a step took 110.0 ms and is predicted to take 9"), std::string::npos)
      << text.out << text.err;
  arguments.emplace_back("--json");
  nlohmann::json plan = nlohmann::json::parse(run_program(folder.path(), arguments).out);
  EXPECT_LT(plan["load_clock"], 0.85);
  EXPECT_NEAR(plan["layouts"][0]["seconds"]["total"], 0.11, 0.002);
}

// A cluster's file may come from anyone.
TEST(Plan, PricesTheNumberFormatThatIsAskedFor) {
  TemporaryFolder folder;
  auto days = [&](const std::string& precision) {
    ProgramResult plan = run_program(folder.path(), {"plan", "--model.preset=gpt2-124m", "--cluster=h200", "--gpus=1",
                                                     "--json", "--exact=0", "--compile.precision=" + precision});
    EXPECT_EQ(plan.status, 0) << plan.err;
    return double(nlohmann::json::parse(plan.out)["layouts"][0]["days"]);
  };
  EXPECT_LT(days("fp8"), days("bf16"));
}

TEST(Plan, NamesTellTheTerminalNothing) {
  TemporaryFolder folder;
  write_file_quickly(folder.path() / "mine.toml", R"(name = "a\u001b[2J\u007f\u009b"
nodes = 1
gpus_per_node = 2
node_power = {value = 2000, source = "a guess"}
[gpu]
model = "h200"
[within]
bandwidth = {value = 349e9, source = "a guess"}
latency = {value = 30e-6, source = "a guess"}
)");
  std::vector<std::string> arguments = {"plan",     "--model.preset=gpt2-124m", "--cluster=mine.toml",
                                        "--gpus=2", "--html=page.html",         "--exact=0"};
  ProgramResult text = run_program(folder.path(), arguments);
  EXPECT_EQ(text.status, 0) << text.err;
  arguments.emplace_back("--json");
  ProgramResult json = run_program(folder.path(), arguments);
  EXPECT_EQ(nlohmann::json::parse(json.out)["cluster"], "a\x1b[2J\x7f\xc2\x9b");
  arguments.emplace_back("--gpus=1000000");
  ProgramResult error = run_program(folder.path(), arguments);
  EXPECT_EQ(error.status, 1);
  for (const std::string& shown : {text.out, json.out, error.err, read_file(folder / "page.html")})
    for (const char* piece : {"\x1b", "\x7f", "\xc2\x9b"}) EXPECT_EQ(shown.find(piece), std::string::npos) << shown;
  EXPECT_NE(text.out.find("a\\x1b[2J\\u007f\\u009b"), std::string::npos) << text.out;
}

// Its config.json has every key, mesh.data = 1 and slots among them, which say nothing of other layouts.
TEST(Plan, ARunOfOneRankIsPlannedForMore) {
  TemporaryFolder folder;
  write_file_quickly(folder.path() / "config.json",
                     R"({"model": {"preset": "gpt2-124m"}, "mesh": {"pipe": 1, "data": 1, "slots": 4},
                         "train": {"batch": 1, "total_batch": 65536}})");
  ProgramResult result = run_program(folder.path(), {"plan", "config.json", "--gpus=2", "--exact=0"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("tokamak train config.json --mesh.data=2"), std::string::npos) << result.out;
}

TEST(Plan, StepsAreThoseOfTheRunFile) {
  TemporaryFolder folder;
  write_file_quickly(folder.path() / "run.toml",
                     "[model]\npreset = \"gpt2-124m\"\n[optimizer]\nlr = 1e-3\n[train]\nbatch = 24\nsteps = 1e4\n");
  auto line = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"plan", "run.toml", "--exact=0", "--layouts=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramResult result = run_program(folder.path(), arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    size_t at = result.out.find("tokamak train ");
    return result.out.substr(at, result.out.find('\n', at) - at);
  };
  std::string plain = line({"--gpus=4"});
  EXPECT_EQ(plain.rfind("tokamak train run.toml --mesh.", 0), 0u) << "the rate is the file's: " << plain;
  EXPECT_NE(plain.find("--train.total_batch=24576 --train.steps=10000"), std::string::npos) << plain;
  std::string longer = line({"--gpus", "4", "--tokens", "10M", "--optimizer.lr", "2e-3", "--mesh.zero", "1"});
  EXPECT_EQ(longer.rfind("tokamak train run.toml --optimizer.lr=2e-3 --mesh.", 0), 0u) << longer;
  EXPECT_NE(longer.find("--train.total_batch=24576 --train.steps=407"), std::string::npos) << longer;
  std::string of_data = line({"--gpus=8", "--mesh.data=8", "--train.batch=64"});
  EXPECT_NE(of_data.find("--mesh.data=8"), std::string::npos) << of_data;
  EXPECT_NE(of_data.find("--train.total_batch=65536 --train.steps=10000"), std::string::npos) << of_data;
  EXPECT_EQ(longer.find(" 4 "), std::string::npos) << longer;
}

TEST(Plan, WhatIsSaidOfThePipelineHolds) {
  TemporaryFolder folder;
  auto plan = [&](std::vector<std::string> said) {
    std::vector<std::string> arguments = {
        "plan", "--model.preset=gpt3-6.7b", "--cluster=h200", "--gpus=4", "--exact=0", "--mesh.pipe=2", "--layouts=1"};
    arguments.insert(arguments.end(), said.begin(), said.end());
    ProgramResult result = run_program(folder.path(), arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  EXPECT_NE(plan({"--mesh.schedule=gpipe"}).find("--mesh.schedule=gpipe"), std::string::npos);
  std::string interleaved = plan({"--mesh.schedule=interleaved", "--mesh.interleave=4"});
  EXPECT_NE(interleaved.find("--mesh.schedule=interleaved --mesh.interleave=4"), std::string::npos) << interleaved;
}

TEST(Plan, ExamplesAndClustersNeedNoModel) {
  TemporaryFolder folder;
  EXPECT_NE(run_program(folder.path(), {"plan", "--examples"}).out.find("72.34 days"), std::string::npos);
  EXPECT_NE(run_program(folder.path(), {"plan", "--clusters"}).out.find("leonardo: CINECA"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
