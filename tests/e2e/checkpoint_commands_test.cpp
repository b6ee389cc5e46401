// `tokamak checkpoint list`, `verify`, `diff` and `prune`, as a user runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/file_lock.h"
#include "checkpoint/checkpoint_state.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/safetensors.h"
#include "tests/support/expect_refused.h"
#include "tests/support/quick_file.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Arguments = std::vector<std::string>;

class CheckpointCommands : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    train({"--train.steps=12", "--train.checkpoint_every=3", "--train.keep_checkpoints=9", "--train.eval_every=4",
           "--train.eval_batches=2", "--train.keep_best"});
  }

  void train(const Arguments& options) {
    Arguments arguments = {"--data.path=data"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    ProgramResult trained = run_program(folder_.path(), test::tiny_arguments("train", arguments));
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  ProgramResult run(const Arguments& arguments) {
    Arguments all = {"checkpoint"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_program(folder_.path(), all);
  }
  /// The names in the order of the list.
  std::vector<std::string> listed() {
    ProgramResult result = run({"list", "run", "--json"});
    EXPECT_EQ(result.status, 0) << result.err;
    std::vector<std::string> names;
    json told = json::parse(result.out);
    for (const json& checkpoint : told["checkpoints"]) names.push_back(checkpoint["name"]);
    return names;
  }
  fs::path checkpoint(const std::string& name) { return folder_ / "run/checkpoints" / name; }
  void flip(const fs::path& file) {
    std::string content = read_file(file);
    content.back() = char(content.back() ^ 1);
    write_file_quickly(file, content);
  }

  TemporaryFolder folder_;
};

TEST_F(CheckpointCommands, List) {
  ProgramResult result = run({"list", "run/checkpoints/", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  json all = json::parse(result.out)["checkpoints"];
  ASSERT_EQ(all.size(), 4u) << result.out;
  EXPECT_EQ(all[0]["step"], 3);
  EXPECT_EQ(all[0]["whole"], true);
  EXPECT_FALSE(all[0].contains("val_loss"));
  EXPECT_GT(all[0]["loss"], 1.0);
  EXPECT_EQ(all[2]["marks"], json({"known good"}));
  EXPECT_EQ(all[3]["marks"], json({"newest", "best"}));
  EXPECT_GT(all[3]["val_loss"], 1.0);
  EXPECT_GT(all[3]["bytes"], 400000);

  write_file_quickly(checkpoint("step_00000003") / kStateFile, "");
  fs::resize_file(checkpoint("step_00000006") / kModelFile, 1000);
  fs::create_directory(checkpoint("step_00000015.tmp"));
  ProgramResult text = run({"list"});
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* words : {"step_00000003  ", "NOT WHOLE: ", "state.json: expected a JSON object",
                            "model.safetensors has 1000 of ", "step_00000015.tmp", "was left behind", "newest, best"})
    EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
}

TEST_F(CheckpointCommands, VerifyNamesTheTensor) {
  ProgramResult good = run({"verify", "run"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_NE(good.out.find("step_00000012: good: 2 files, 85 tensors"), std::string::npos) << good.out;
  fs::path damaged = checkpoint("step_00000009");
  std::string last = SafetensorsReader(damaged / kModelFile).names().back();
  flip(damaged / kModelFile);
  expect_refused(run({"verify", "run"}), {"expected 4 good checkpoints, got 1 damaged"});
  expect_refused(run({"verify", "run/checkpoints/step_00000009"}), {"expected 1 good checkpoint, got 1 damaged"});
  json problems = json::parse(run({"verify", damaged.string(), "--json"}).out)["problems"];
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0]["file"], (damaged / kModelFile).string());
  EXPECT_TRUE(problems[0].contains("tensor")) << problems;
  EXPECT_EQ(run({"verify", "run/checkpoints/latest"}).status, 0);
}

// The tensor is named, and the run goes on from the newest good one.
TEST_F(CheckpointCommands, ADamagedTensorIsNamedAsTheRunGoesOn) {
  flip(checkpoint("step_00000012") / kOptimizerFile);
  ProgramResult result = run_program(folder_.path(), {"train", "run", "--train.steps=13"});
  EXPECT_EQ(result.status, 0) << result.err;
  std::string told = result.out + result.err;
  EXPECT_NE(told.find("skipped a damaged checkpoint: [checkpoint] '"), std::string::npos) << told;
  EXPECT_NE(told.find("step_00000012/optimizer.safetensors: expected checksum"), std::string::npos) << told;
  EXPECT_NE(told.find("resuming after step 9"), std::string::npos) << told;
}

TEST_F(CheckpointCommands, Diff) {
  ProgramResult same = run({"diff", "run", "run/checkpoints/best"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_NE(same.out.find("85 of 85 tensors are equal"), std::string::npos) << same.out;
  fs::copy(checkpoint("step_00000012"), folder_ / "copy", fs::copy_options::recursive);
  flip(folder_ / "copy" / kModelFile);
  ProgramResult other = run({"diff", "run", "copy"});
  EXPECT_EQ(other.status, 1);
  EXPECT_EQ(other.err, "");
  EXPECT_NE(other.out.find("84 of 85 tensors are equal"), std::string::npos) << other.out;
  EXPECT_NE(other.out.find("1 of "), std::string::npos) << other.out;
  json told = json::parse(run({"diff", "run", "copy", "--json"}).out);
  EXPECT_EQ(told["equal"], false);
  EXPECT_EQ(told["tensors"].size(), 85u);

  ASSERT_EQ(run_program(folder_.path(), {"export", "run", "model"}).status, 0);
  ProgramResult exported = run({"diff", "run", "model"});
  EXPECT_EQ(exported.status, 0) << exported.out;
  EXPECT_NE(exported.out.find("28 of 28 tensors are equal; states of an optimizer were not"), std::string::npos)
      << exported.out;
  expect_refused(run({"diff", "run", "nothing"}), {"nothing", "check the path"});
  expect_refused(run({"diff", "run"}), {"b"});
}

// Names in a file may be anything.
TEST_F(CheckpointCommands, NamesAreShownEscaped) {
  fs::path other = folder_ / "other";
  fs::copy(checkpoint("step_00000012"), other, fs::copy_options::recursive);
  std::vector<float> value = {1};
  SafetensorsWriter writer(other / kOptimizerFile, {{"\x1b[31mred\nstep 1", {DType::kF32, {1}}}});
  writer.write("\x1b[31mred\nstep 1", std::as_bytes(std::span(value)));
  writer.finish();
  ProgramResult result = run({"diff", "run", "other"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  EXPECT_NE(result.out.find("[31mred\\nstep 1 "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("only in b"), std::string::npos) << result.out;
}

TEST_F(CheckpointCommands, Prune) {
  std::vector<std::string> before = listed();
  ProgramResult dry = run({"prune", "run", "--keep=1", "--dry-run"});
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_NE(dry.out.find("2 of 4 checkpoints would go"), std::string::npos) << dry.out;
  EXPECT_EQ(listed(), before);
  fs::create_directory(checkpoint("step_00000015.tmp"));
  ProgramResult result = run({"prune", "run", "--keep=1", "--every=6"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(listed(),
            (std::vector<std::string>{"step_00000006", "step_00000009", "step_00000012", "step_00000015.tmp"}))
      << "step 9 is known to be good";
  fs::remove(checkpoint("best"));
  fs::create_symlink("step_00000006", checkpoint("best"));
  EXPECT_EQ(run({"prune", "run", "--keep=1"}).status, 0);
  EXPECT_EQ(listed().size(), 4u) << "nor goes the best";
  EXPECT_FALSE(fs::exists(folder_ / "run/lock"));
}

// Of the newest ones as many stay as are asked for; the one that `train` goes on from is older.
TEST_F(CheckpointCommands, PruneKeepsOneThatIsGood) {
  for (const char* name : {"step_00000012", "step_00000009", "step_00000006"}) flip(checkpoint(name) / kModelFile);
  ProgramResult result = run({"prune", "run", "--keep=1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("skipped a damaged checkpoint"), std::string::npos) << result.err;
  std::vector<std::string> left = listed();
  EXPECT_EQ(left, (std::vector<std::string>{"step_00000003", "step_00000009", "step_00000012"}));
  flip(checkpoint("step_00000003") / kModelFile);
  expect_refused(run({"prune", "run", "--keep=1"}), {"expected a good checkpoint"});
  EXPECT_EQ(listed(), left);
}

TEST_F(CheckpointCommands, Mistakes) {
  expect_refused(run({"prune", "run"}), {"[--keep] expected", "1 or more", "add --keep=2"});
  expect_refused(run({"prune", "data", "--keep=1"}), {"expected a run folder with checkpoints"});
  expect_refused(run({"list", "none"}), {"none: expected a run folder with checkpoints, got nothing"});
  expect_refused(run({"verify", "none"}), {"none: expected a checkpoint's folder", "got nothing"});
  expect_refused(run({"verify", "text.txt"}), {"got a file"});
  EXPECT_FALSE(fs::exists(folder_ / "none"));
  std::vector<std::string> before = listed();
  FileLock lock(folder_ / "run/lock");
  ASSERT_TRUE(lock.is_held());
  expect_refused(run({"prune", "run", "--keep=1"}), {"for this command alone, but process", "wait until it ends"});
  EXPECT_EQ(listed(), before);
}

}  // namespace
}  // namespace tokamak
