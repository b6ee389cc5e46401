// The program's account of a step: on one rank, on threads and on processes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "base/file.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

double sum_of(const nlohmann::json& breakdown) {
  double sum =
      breakdown["launch_gaps"].get<double>() + breakdown["data_wait"].get<double>() + breakdown["idle"].get<double>();
  for (const auto& [name, seconds] : breakdown["work"].items()) sum += seconds.get<double>();
  return sum;
}

TEST(ProfileProgram, ShowsTheTimeBreakdownAndWritesIt) {
  TemporaryFolder folder;
  ProgramResult result = run_program(
      folder.path(),
      test::tiny_arguments("profile", {"--model.vocab=301", "--steps=2", "--device=cpu", "--json=profile.json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("where the time goes"), std::string::npos) << result.out;
  auto json = nlohmann::json::parse(read_file(folder / "profile.json"));
  ASSERT_EQ(json["ranks"].size(), 1u);
  EXPECT_NEAR(sum_of(json["ranks"][0]["breakdown"]), json["ranks"][0]["seconds"].get<double>(), 1e-9);
  EXPECT_NE(json["command"].get<std::string>().find("tokamak profile --model.layers=2"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(ProfileProgram, OnRanksEachAccountsForItsTime) {
  for (const char* kind : {"threads", "processes"}) {
    SCOPED_TRACE(kind);
    TemporaryFolder folder;
    ::setenv("TOKAMAK_RANKS", kind, 1);
    ProgramResult result = run_program(
        folder.path(), test::tiny_arguments("profile", {"--model.vocab=301", "--steps=2", "--device=cpu", "--threads=1",
                                                        "--mesh.data=2", "--train.batch=4", "--json=profile.json"}));
    ::unsetenv("TOKAMAK_RANKS");
    ASSERT_EQ(result.status, 0) << result.err;
    auto json = nlohmann::json::parse(read_file(folder / "profile.json"));
    ASSERT_EQ(json["ranks"].size(), 2u);
    for (const auto& rank : json["ranks"]) {
      EXPECT_NEAR(sum_of(rank["breakdown"]), rank["seconds"].get<double>(), 1e-9);
      EXPECT_GT(rank["breakdown"]["work"]["communication"].get<double>(), 0);
    }
  }
}

// What tools/check_trace.py says, and its status.
std::pair<int, std::string> ask_perfetto(const std::filesystem::path& trace) {
  std::filesystem::path tool = std::filesystem::current_path() / "tools/check_trace.py",
                        said = trace.string() + ".said";
  int status =
      std::system(fmt::format("python3 '{}' '{}' > '{}' 2>&1", tool.string(), trace.string(), said.string()).c_str());
  return {WEXITSTATUS(status), read_file(said)};
}

// By Perfetto's own trace processor, where it is to be had: every event, of ranks, collectives and the loader's
// threads.
TEST(ProfileProgram, WritesATraceThatPerfettoReads) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  ProgramResult result =
      run_program(folder.path(),
                  test::tiny_arguments("profile", {"--data.path=data", "--data.workers=2", "--steps=1", "--device=cpu",
                                                   "--threads=1", "--mesh.data=2", "--mesh.tensor=2", "--mesh.pipe=2",
                                                   "--train.batch=4", "--train.total_batch=256", "--trace=step.json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  nlohmann::json trace = nlohmann::json::parse(read_file(folder / "step.json"));
  EXPECT_GT(trace["traceEvents"].size(), 100u);
  auto [status, said] = ask_perfetto(folder / "step.json");
  if (status == 77) GTEST_SKIP() << said;
  EXPECT_EQ(status, 0) << said;
  for (nlohmann::json& event : trace["traceEvents"])
    if (event["ph"] == "X") event["ts"] = event["ts"].get<double>() - 1e9;
  write_file_atomic(folder / "early.json", trace.dump());
  std::tie(status, said) = ask_perfetto(folder / "early.json");
  EXPECT_EQ(status, 1) << "it drops what begins before 0";
  EXPECT_NE(said.find("trace_sorter_negative_timestamp_dropped"), std::string::npos) << said;
}

TEST(ProfileProgram, RefusesATraceOfAnotherKindAtOnce) {
  TemporaryFolder folder;
  ProgramResult result =
      run_program(folder.path(), test::tiny_arguments("profile", {"--model.vocab=301", "--trace=step.html"}));
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.err.find("[--trace] expected a file that ends in .json"), std::string::npos) << result.err;
}

TEST(ProfileProgram, ReadsDataWhereThatIsGivenAndGoesOnWithARun) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  ProgramResult result =
      run_program(folder.path(), test::tiny_arguments("profile", {"--data.path=data", "--steps=2", "--device=cpu"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out.find("from step"), std::string::npos) << result.out;
  result = run_program(folder.path(), test::tiny_arguments("train", {"--data.path=data", "--device=cpu"}));
  ASSERT_EQ(result.status, 0) << result.err;
  result = run_program(folder.path(), {"profile", "run", "--steps=2"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("from step 21 on: run/checkpoints/step_00000020"), std::string::npos) << result.out;
}

TEST(TrainProgram, ProfilesSomeOfItsSteps) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  ProgramResult result =
      run_program(folder.path(), test::tiny_arguments("train", {"--data.path=data", "--device=cpu", "--profile.at=3",
                                                                "--profile.steps=2", "--profile.json=profile.json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("--- profile of steps 7 to 8 ---"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("where the time goes"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("step  20/20"), std::string::npos) << result.out;
  auto json = nlohmann::json::parse(read_file(folder / "profile.json"));
  EXPECT_NEAR(sum_of(json["ranks"][0]["breakdown"]), json["ranks"][0]["seconds"].get<double>(), 1e-9);
  EXPECT_EQ(json["command"].get<std::string>().find("tokamak train "), 0u);
  result = run_program(folder.path(), {"train", "run", "--train.steps=40", "--profile.at=3"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("no profile: not all of its steps, from 3 on"), std::string::npos) << result.out;
}

TEST(TrainProgram, RefusesAProfileThatCannotBeBeforeTheWork) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = test::tiny_arguments("train", {"--data.path=data", "--device=cpu"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramResult result = run_program(folder.path(), arguments);
    EXPECT_NE(result.status, 0);
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
    return result.err;
  };
  EXPECT_NE(refusal({"--profile.at=5"}).find("[--profile.at] expected a run of at least 36 steps"), std::string::npos);
  EXPECT_NE(refusal({"--profile.page=p.html"}).find("the step that the profile begins with, got none beside"),
            std::string::npos);
  EXPECT_NE(refusal({"--profile.at=1", "--profile.steps=2", "--profile.page=no/p.html"}).find("cannot write no/p.html"),
            std::string::npos);
}

}  // namespace
}  // namespace tokamak
