// `tokamak diff` of real runs: on other ranks, of another seed, and with a flipped bit.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/support/expect_refused.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Arguments = std::vector<std::string>;

class Diff : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    train("a");
  }
  void train(const std::string& out, const Arguments& options = {}) {
    Arguments arguments = {"--data.path=data",       "--train.steps=6", "--train.checkpoint_every=3",
                           "--train.digest_every=2", "--mesh.slots=2",  "--train.out=" + out};
    arguments.insert(arguments.end(), options.begin(), options.end());
    ProgramResult trained = run_program(folder_.path(), test::tiny_arguments("train", arguments));
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  ProgramResult diff(const Arguments& runs) {
    Arguments arguments = {"diff"};
    arguments.insert(arguments.end(), runs.begin(), runs.end());
    return run_program(folder_.path(), arguments);
  }

  TemporaryFolder folder_;
};

TEST_F(Diff, OfTheSameRunOnOtherRanks) {
  train("b", {"--mesh.data=2", "--mesh.zero=2"});
  ProgramResult same = diff({"a", "b"});
  EXPECT_EQ(same.status, 0) << same.out;
  for (const char* words : {"equal in all 6 steps", "digests: of 3 steps, all equal", "85 of 85 tensors are equal"})
    EXPECT_NE(same.out.find(words), std::string::npos) << words << "\n" << same.out;
}

TEST_F(Diff, OfAnotherSeed) {
  train("b", {"--train.seed=2"});
  ProgramResult other = diff({"a", "b", "--json"});
  EXPECT_EQ(other.status, 1);
  EXPECT_EQ(other.err, "");
  json told = json::parse(other.out);
  EXPECT_EQ(told["first_step"], 1);
  EXPECT_EQ(told["what"], json({"loss", "gradient norm"}));
  EXPECT_EQ(told["last_equal_digest"], 0);
  EXPECT_FALSE(told["tensors"].empty());
  EXPECT_NE(diff({"a", "b"}).out.find("part at step 1, by loss, gradient norm"), std::string::npos);
}

// The runs share three steps; behind them the second has another rate.
TEST_F(Diff, OfARunThatGoesOnOtherwise) {
  fs::copy(folder_ / "a", folder_ / "b", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  fs::remove_all(folder_ / "b/checkpoints/step_00000006");
  train("b", {"--optimizer.lr=1e-2"});
  ProgramResult other = diff({"a", "b"});
  EXPECT_EQ(other.status, 1);
  for (const char* words :
       {"part at step 4, by digest", "parameters were equal after step 2", "step_00000006", "of 85 tensors are equal"})
    EXPECT_NE(other.out.find(words), std::string::npos) << words << "\n" << other.out;
  EXPECT_EQ(other.out.find("step_00000003"), std::string::npos) << other.out;
}

TEST_F(Diff, Mistakes) {
  expect_refused(diff({"a", "data"}), {"data: expected a run folder", "check the path"});
  expect_refused(diff({"a"}), {"b"});
}

}  // namespace
}  // namespace tokamak
