// Errors in the middle of training lose no finished step, and what cannot be gone on from is never saved.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_folder.h"
#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using test::tiny_arguments;

class SaveFirst : public testing::Test {
 protected:
  /// Tokens of 16 bits below 250, but for one that no small vocabulary has, in a window that is not looked at before
  /// the start (data/check_tokens.h).
  void write_tokens(const std::string& name, size_t count, size_t bad) {
    std::string bytes;
    for (size_t i = 0; i < count; ++i) {
      auto token = uint16_t(i == bad ? 60000 : philox4x32(1, i)[0] % 250);
      bytes.append(reinterpret_cast<const char*>(&token), sizeof token);
    }
    write_file_quickly(folder_ / name, bytes);
  }

  ProgramResult train(std::vector<std::string> more) {
    more.insert(more.end(), {"--data.format=raw", "--data.path=train.raw", "--model.vocab=256"});
    return run_program(folder_.path(), tiny_arguments("train", more));
  }

  /// The steps of the newest checkpoint, which have a line each in metrics.jsonl.
  int64_t saved_steps() {
    auto found = find_checkpoint(folder_ / "run", nullptr);
    if (!found) return 0;
    std::string lines = read_file(folder_ / "run/metrics.jsonl");
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), found->state.step);
    return found->state.step;
  }

  TemporaryFolder folder_;
};

TEST_F(SaveFirst, ABadTokenInTheValidationData) {
  write_tokens("train.raw", 2000, 2000);
  write_tokens("val.raw", 400, 40);
  expect_refused(train({"--data.val_path=val.raw", "--train.eval_every=5"}), {"val.raw", "60000"});
  EXPECT_EQ(saved_steps(), 5);
}

TEST_F(SaveFirst, ABadTokenInTheTrainingData) {
  write_tokens("train.raw", 2000, 700);
  expect_refused(train({"--train.steps=500"}), {"train.raw", "60000"});
  EXPECT_GT(saved_steps(), 0);
}

TEST_F(SaveFirst, TheValidationLossGoesIntoTheLineOfItsStep) {
  write_tokens("train.raw", 2000, 2000);
  write_tokens("val.raw", 400, 400);
  ASSERT_EQ(train({"--data.val_path=val.raw", "--train.eval_every=5", "--train.checkpoint_every=3"}).status, 0);
  std::istringstream lines(read_file(folder_ / "run/metrics.jsonl"));
  int64_t step = 0;
  for (std::string line; std::getline(lines, line);) {
    auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row["step"], ++step);
    EXPECT_EQ(row.contains("val_loss"), step % 5 == 0) << line;
  }
  EXPECT_EQ(step, 20);
}

// As a process leaves it that is killed when it has saved a step and not evaluated it yet: the next one makes up for
// it.
TEST_F(SaveFirst, TheValidationLossOfASavedStepIsNeverMissing) {
  write_tokens("train.raw", 2000, 2000);
  write_tokens("val.raw", 400, 400);
  std::vector<std::string> often = {"--data.val_path=val.raw", "--train.eval_every=5", "--train.checkpoint_every=5"};
  ASSERT_EQ(train(often).status, 0);
  auto val_losses = [&] {
    std::istringstream lines(read_file(folder_ / "run/metrics.jsonl"));
    std::map<int64_t, double> losses;
    for (std::string line; std::getline(lines, line);)
      if (auto row = nlohmann::json::parse(line); row.contains("val_loss")) losses[row["step"]] = row["val_loss"];
    return losses;
  };
  std::map<int64_t, double> all = val_losses();
  ASSERT_EQ(all.size(), 4u);
  std::string text = read_file(folder_ / "run/metrics.jsonl");
  for (int64_t step : {20, 15}) {
    size_t begin = text.find(fmt::format("{{\"step\":{},", step)), end = text.find(",\"val_loss\"", begin);
    write_file_quickly(folder_ / "run/metrics.jsonl", text.substr(0, end) + "}\n");
    if (step == 15) std::filesystem::remove_all(folder_ / "run/checkpoints/step_00000020");
    ProgramResult result = train(often);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.out.find(fmt::format("validation loss after step {}, which was not", step)), std::string::npos);
    EXPECT_EQ(val_losses(), all);
  }
}

// One that is finite all the same: nothing that it is trained with brings it back.
TEST_F(SaveFirst, OneKnownToBeGoodOutlivesThoseThatAreLost) {
  write_tokens("train.raw", 2000, 2000);
  ASSERT_EQ(train({"--train.steps=6", "--train.checkpoint_every=3"}).status, 0);
  ProgramResult diverged =
      train({"--train.steps=60", "--train.checkpoint_every=1", "--train.keep_checkpoints=1", "--optimizer.lr=1e30",
             "--optimizer.clip=0", "--optimizer.warmup_steps=0", "--train.background_saves=false"});
  expect_refused(diverged, {"training has diverged", "goes on after step 6", "remove"});
  EXPECT_EQ(open_checkpoint(folder_ / "run/checkpoints/step_00000006", nullptr).state.step, 6);
  for (const std::filesystem::path& path : list_checkpoints(checkpoints_folder(folder_ / "run")))
    if (path.filename() != "step_00000006") std::filesystem::remove_all(path);
  EXPECT_EQ(train({"--train.steps=12"}).status, 0);
}

TEST_F(SaveFirst, ADivergedStateIsNotSavedAndTheLastGoodOneStays) {
  write_tokens("train.raw", 2000, 2000);
  ASSERT_EQ(train({"--train.steps=3"}).status, 0);
  train({"--optimizer.lr=1e10", "--optimizer.warmup_steps=0", "--train.steps=40", "--train.checkpoint_every=1",
         "--train.keep_checkpoints=1"});
  std::string evaluated = run_program(folder_.path(), {"eval", "run", "--split=train"}).out;
  EXPECT_EQ(evaluated.find("nan"), std::string::npos) << evaluated;
}

}  // namespace
}  // namespace tokamak
