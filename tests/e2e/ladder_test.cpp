// The program's reports: the ladder with every rung, and explain for models that this machine could never hold.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"
#include "train/ladder.h"

namespace tokamak {
namespace {

TEST(LadderProgram, RunsEveryRungAndWritesReports) {
  TemporaryFolder folder;
  ProgramResult result =
      run_program(folder.path(),
                  test::tiny_arguments("ladder", {"--model.vocab=301", "--steps=2", "--device=cpu", "--out=report"}));
  ASSERT_EQ(result.status, 0) << result.err;
  auto json = nlohmann::json::parse(read_file(folder / "report/ladder.json"));
  ASSERT_EQ(json["rungs"].size(), cpu_rungs().size());
  for (size_t i = 0; i < cpu_rungs().size(); ++i) {
    const auto& rung = json["rungs"][i];
    EXPECT_EQ(rung["name"], cpu_rungs()[i].name);
    EXPECT_NE(result.out.find(cpu_rungs()[i].name), std::string::npos);
    for (const char* key :
         {"ms", "predicted_ms", "tokens_per_second", "speedup_over_first", "gflops", "planned_bytes", "mfu"})
      EXPECT_GT(rung[key].get<double>(), 0) << rung["name"] << " " << key;
  }
  EXPECT_TRUE(json["rungs"][0]["kept"].get<bool>());
  EXPECT_EQ(json["config"]["model"]["vocab"], 301);
  EXPECT_GT(json["machine"]["fp32_gflops"].get<double>(), 0);
  EXPECT_NE(json["command"].get<std::string>().find("tokamak ladder --model.layers=2"), std::string::npos);
  std::string html = read_file(folder / "report/ladder.html");
  for (const Rung& rung : cpu_rungs()) EXPECT_NE(html.find(rung.name), std::string::npos) << rung.name;
}

// Its parameters and states alone take more than 18 GB.
// Before anything is measured for it.
TEST(LadderProgram, AReportThatCannotBeWrittenIsRefusedAtOnce) {
  TemporaryFolder folder;
  ProgramResult result = run_program(folder.path(), {"ladder", "--json=nowhere/ladder.json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("nowhere/ladder.json"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(ExplainProgram, TheLargestPresetWithoutAllocatingIt) {
  TemporaryFolder folder;
  ProgramResult result =
      run_program(folder.path(), {"explain", "--nominal", "--model.preset=gpt2-1558m", "--train.batch=1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_LT(result.peak_bytes, 500'000'000);
  for (const char* piece : {"1.56 G parameters", "48 layers", "passes over the step", "fuse", "kernels of the step",
                            "matmul", "optimizer step: 1024 tokens", "tokens/s", "memory"})
    EXPECT_NE(result.out.find(piece), std::string::npos) << "lacks: " << piece << "\n" << result.out.substr(0, 2000);
  fmt::print("gpt2-1558m: {:.2f} s, {} MB\n", result.seconds, result.peak_bytes / 1'000'000);
}

TEST(ExplainProgram, TheSmallestPreset) {
  TemporaryFolder folder;
  ProgramResult result =
      run_program(folder.path(), {"explain", "--nominal", "--graph", "--plan", "--model.preset=gpt2-124m"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("124.44 M parameters"), std::string::npos) << result.out.substr(0, 500);
  EXPECT_NE(result.out.find("step as compiled"), std::string::npos);
  fmt::print("gpt2-124m: {:.2f} s, {} MB\n", result.seconds, result.peak_bytes / 1'000'000);
}

}  // namespace
}  // namespace tokamak
