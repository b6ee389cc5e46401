// The program's account of a step: on one rank, on threads and on processes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

double sum_of(const nlohmann::json& ledger) {
  double sum = ledger["launch_gaps"].get<double>() + ledger["data_wait"].get<double>() + ledger["idle"].get<double>();
  for (const auto& [name, seconds] : ledger["work"].items()) sum += seconds.get<double>();
  return sum;
}

TEST(ProfileProgram, ShowsTheLedgerAndWritesIt) {
  TemporaryFolder folder;
  ProgramResult result = run_program(
      folder.path(),
      test::tiny_arguments("profile", {"--model.vocab=301", "--steps=2", "--device=cpu", "--json=profile.json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("where the time goes"), std::string::npos) << result.out;
  auto json = nlohmann::json::parse(read_file(folder / "profile.json"));
  ASSERT_EQ(json["ranks"].size(), 1u);
  EXPECT_NEAR(sum_of(json["ranks"][0]["ledger"]), json["ranks"][0]["seconds"].get<double>(), 1e-9);
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
      EXPECT_NEAR(sum_of(rank["ledger"]), rank["seconds"].get<double>(), 1e-9);
      EXPECT_GT(rank["ledger"]["work"]["communication"].get<double>(), 0);
    }
  }
}

// By Perfetto's own program, where it is to be had.
TEST(ProfileProgram, WritesATraceThatPerfettoReads) {
  TemporaryFolder folder;
  ProgramResult result = run_program(
      folder.path(), test::tiny_arguments("profile", {"--model.vocab=301", "--steps=2", "--device=cpu", "--threads=1",
                                                      "--mesh.data=2", "--train.batch=4", "--trace=step.json"}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_GT(nlohmann::json::parse(read_file(folder / "step.json"))["traceEvents"].size(), 100u);
  std::filesystem::path tool = std::filesystem::current_path() / "tools/check_trace.py";
  int status = std::system(fmt::format("python3 '{}' '{}' > '{}' 2>&1", tool.string(), (folder / "step.json").string(),
                                       (folder / "said").string())
                               .c_str());
  std::string said = read_file(folder / "said");
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << said;
  EXPECT_EQ(WEXITSTATUS(status), 0) << said;
}

TEST(ProfileProgram, RefusesATraceOfAnotherKindAtOnce) {
  TemporaryFolder folder;
  ProgramResult result =
      run_program(folder.path(), test::tiny_arguments("profile", {"--model.vocab=301", "--trace=step.html"}));
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.err.find("[--trace] expected a file that ends in .json"), std::string::npos) << result.err;
}

TEST(ProfileProgram, ReadsDataWhereThatIsGiven) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  ProgramResult result =
      run_program(folder.path(), test::tiny_arguments("profile", {"--data.path=data", "--steps=2", "--device=cpu"}));
  EXPECT_EQ(result.status, 0) << result.err;
}

}  // namespace
}  // namespace tokamak
