// The program's reports: the ladder with every rung, and explain for models that this machine could never hold.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "ladder/ladder.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

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
         {"ms", "predicted_ms", "tokens_per_second", "speedup_over_first", "model_gflops", "planned_bytes", "mfu"})
      EXPECT_GT(rung[key].get<double>(), 0) << rung["name"] << " " << key;
  }
  EXPECT_TRUE(json["rungs"][0]["kept"].get<bool>());
  EXPECT_EQ(json["config"]["model"]["vocab"], 301);
  EXPECT_GT(json["machine"]["fp32_gflops"].get<double>(), 0);
  EXPECT_NE(json["command"].get<std::string>().find("tokamak ladder --model.layers=2"), std::string::npos);
  std::string html = read_file(folder / "report/ladder.html");
  for (const Rung& rung : cpu_rungs()) EXPECT_NE(html.find(rung.name), std::string::npos) << rung.name;
}

// On threads, and on processes, of which one speaks and writes.
TEST(LadderProgram, OnRanksItAddsTheWaysToDivideARun) {
  for (const char* kind : {"threads", "processes"}) {
    SCOPED_TRACE(kind);
    TemporaryFolder folder;
    ::setenv("TOKAMAK_RANKS", kind, 1);
    ProgramResult result = run_program(
        folder.path(),
        test::tiny_arguments("ladder", {"--model.vocab=301", "--model.layers=4", "--steps=2", "--device=cpu",
                                        "--threads=1", "--mesh.data=2", "--train.batch=4", "--out=report"}));
    ::unsetenv("TOKAMAK_RANKS");
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    auto json = nlohmann::json::parse(read_file(folder / "report/ladder.json"));
    EXPECT_EQ(json["rungs"].size(), cpu_rungs().size());
    EXPECT_EQ(json["model"]["batch"], 2) << "of one rank";
    ASSERT_EQ(json["meshes"].size(), 11u);
    std::string html = read_file(folder / "report/ladder.html");
    for (const auto& mesh : json["meshes"]) {
      auto name = mesh["name"].get<std::string>();
      EXPECT_EQ(mesh["ranks"], 2);
      EXPECT_EQ(mesh["sequences"], 4) << name;
      for (const char* key : {"ms", "tokens_per_second", "speedup_over_one", "efficiency", "predicted_exposed_ms"})
        EXPECT_GT(mesh[key].get<double>(), 0) << name << " " << key;
      size_t line = result.out.find("\n" + name + " ");
      EXPECT_NE(line, std::string::npos) << name;
      EXPECT_EQ(result.out.find("\n" + name + " ", line + 1), std::string::npos) << name << " is told once";
      EXPECT_NE(html.find(name), std::string::npos) << name;
    }
  }
}

TEST(LadderProgram, OwnIsOneRankAndTheMeshThatIsAskedFor) {
  TemporaryFolder folder;
  ProgramResult result = run_program(
      folder.path(), test::tiny_arguments("ladder", {"--model.vocab=301", "--steps=1", "--device=cpu", "--threads=1",
                                                     "--mesh.data=2", "--mesh.zero=3", "--own", "--out=report"}));
  ASSERT_EQ(result.status, 0) << result.err;
  auto json = nlohmann::json::parse(read_file(folder / "report/ladder.json"));
  ASSERT_EQ(json["rungs"].size(), 1u);
  EXPECT_EQ(json["rungs"][0]["name"], "as configured");
  ASSERT_EQ(json["meshes"].size(), 1u);
  EXPECT_EQ(json["meshes"][0]["name"], "data 2, ZeRO 3");
}

TEST(LadderProgram, ALoneRankTellsWhatItHasNoMeshFor) {
  TemporaryFolder folder;
  ProgramResult result = run_program(
      folder.path(), test::tiny_arguments("ladder", {"--model.vocab=301", "--steps=1", "--device=cpu", "--threads=1",
                                                     "--top", "--mesh.zero=1", "--compile.loss_scale=8"}));
  ASSERT_EQ(result.status, 0) << result.err;
  size_t note = result.out.find("\nmesh.zero = 1 has no effect: there is only one rank\n");
  EXPECT_LT(note, result.out.find("\nrung ")) << result.out;
  EXPECT_EQ(result.out.find("loss_scale"), std::string::npos) << "some rungs are in fp16: " << result.out;
}

// As many sequences for each rank as there are by default, though they are more than a run has by default.
TEST(LadderProgram, ManyRanksNeedNoBatch) {
  TemporaryFolder folder;
  ProgramResult result = run_program(
      folder.path(), {"ladder", "--model.layers=1", "--model.heads=2", "--model.width=32", "--model.context=16",
                      "--model.vocab=301", "--steps=1", "--device=cpu", "--threads=1", "--mesh.data=3", "--top"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("4 x 16 tokens a step of one rank"), std::string::npos) << result.out;
  for (const char* rung : {"\nas configured ", "\ndata 3 ", "\ncontext 3 "})  // of one rank, and of three
    EXPECT_NE(result.out.find(rung), std::string::npos) << rung << result.out;
}

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

TEST(ExplainProgram, TellsWhatDoesNotFitAndWhatDoesNothing) {
  TemporaryFolder folder;
  auto explain = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"explain", "--nominal", "--device=cuda", "--model.vocab=512",
                                          "--compile.precision=bf16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(folder.path(), arguments);
  };
  ProgramResult fits = explain({"--model.preset=gpt2-124m"});
  if (fits.err.find("built with CUDA") != std::string::npos) GTEST_SKIP() << fits.err;
  ASSERT_EQ(fits.status, 0) << fits.err;
  EXPECT_EQ(fits.out.find("does not fit"), std::string::npos) << fits.out;
  EXPECT_EQ(fits.out.find("has no effect"), std::string::npos) << fits.out;
  ProgramResult large = explain({"--model.preset=gpt2-1558m", "--train.batch=64", "--mesh.zero=1"});
  EXPECT_NE(large.out.find("\ndoes not fit: "), std::string::npos) << large.out;
  EXPECT_NE(large.out.find("it can have 138.9"), std::string::npos) << "an H200: " << large.out;
  EXPECT_NE(large.out.find("it fits with --train.batch=32 --train.total_batch="), std::string::npos) << large.out;
  EXPECT_NE(large.out.find("note       mesh.zero = 1 has no effect: there is only one rank"), std::string::npos);
  ProgramResult pipe = explain({"--model.preset=gpt3-13b", "--train.batch=8", "--mesh.pipe=2"});
  EXPECT_NE(pipe.out.find("\ndoes not fit: "), std::string::npos) << pipe.out;
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
