// A run folder is all that is needed to go on, to evaluate and to generate, from any working folder.
#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "config/json.h"
#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    fs::create_directory(elsewhere_);
    ASSERT_EQ(
        run_program(folder_.path(), test::tiny_arguments("train", {"--data.path=data@1", "--train.steps=4"})).status,
        0);
  }

  ProgramResult run(const std::vector<std::string>& arguments) { return run_program(elsewhere_, arguments); }

  TemporaryFolder folder_;
  fs::path elsewhere_ = folder_ / "elsewhere";
  std::string run_ = (folder_ / "run").string();
};

TEST_F(RunFolderTest, EverythingWorksFromElsewhere) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"eval", run_},
                                                  {"generate", run_, "--tokens=3"},
                                                  {"data", "ledger", run_, "--step=2"},
                                                  {"explain", run_, "--nominal"}}) {
    ProgramResult result = run(command);
    EXPECT_EQ(result.status, 0) << command[0] << result.err;
    EXPECT_EQ(result.err, "") << command[0];
  }
  EXPECT_TRUE(fs::is_empty(elsewhere_));
}

TEST_F(RunFolderTest, TrainGoesOnWithTheFolderOrItsConfig) {
  ProgramResult result = run({"train", run_, "--train.steps=6"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("resuming after step 4"), std::string::npos) << result.out;
  result = run({"train", run_ + "/config.json", "--train.steps=7"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("resuming after step 6"), std::string::npos) << result.out;
  EXPECT_TRUE(fs::is_empty(elsewhere_));
}

TEST_F(RunFolderTest, TheVocabularyIsTheDatas) {
  ProgramResult result = run_program(
      folder_.path(), {"train", "--model.layers=1", "--model.heads=1", "--model.width=8", "--model.context=8",
                       "--train.batch=1", "--train.steps=1", "--train.out=default", "--train.eval_every=0"});
  ASSERT_EQ(result.status, 0) << result.err;
  RunConfig config = run_config_from_json(find_checkpoint(folder_ / "default", nullptr)->state.config_json, "");
  EXPECT_EQ(config.model.vocab, 301);
}

TEST_F(RunFolderTest, AMovedRunGeneratesWithoutItsData) {
  fs::rename(folder_ / "run", elsewhere_ / "moved");
  fs::remove_all(folder_ / "data");
  ProgramResult result = run({"generate", "moved", "--prompt=the", "--tokens=3"});
  EXPECT_EQ(result.status, 0) << result.err;
  result = run({"generate", "moved/checkpoints/latest", "--prompt=the", "--tokens=3"});
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST_F(RunFolderTest, AMovedRunGoesOnWithItsMovedData) {
  fs::rename(folder_ / "run", elsewhere_ / "moved");
  fs::rename(folder_ / "data", elsewhere_ / "moved_data");
  expect_refused(run({"train", "moved"}), {"data", "does not exist"});
  ProgramResult result = run({"train", "moved", "--data.path=moved_data@1", "--train.steps=5"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(find_checkpoint(elsewhere_ / "moved", nullptr)->state.step, 5);
}

}  // namespace
}  // namespace tokamak
