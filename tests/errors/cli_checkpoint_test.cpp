// Mistakes and misfortunes with checkpoints, through the program itself.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "tests/support/expect_refused.h"
#include "tests/support/mounted_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::tiny_arguments;

class CliCheckpoint : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  ProgramResult run(const std::vector<std::string>& arguments) { return run_program(folder_.path(), arguments); }
  ProgramResult train(const std::vector<std::string>& more = {}) { return run(tiny_arguments("train", more)); }

  /// Flips one bit in the middle of a file.
  void flip_bit(const fs::path& path) {
    std::string bytes = read_file(path);
    bytes[bytes.size() / 2] = char(bytes[bytes.size() / 2] ^ 4);
    write_file_quickly(path, bytes);
  }

  TemporaryFolder folder_;
};

TEST_F(CliCheckpoint, AFlippedBitFallsBackToTheOneBefore) {
  ASSERT_EQ(train({"--train.steps=10", "--train.checkpoint_every=5"}).status, 0);
  flip_bit(folder_ / "run/checkpoints/step_00000010/model.safetensors");
  ProgramResult generated = run({"generate", "run", "--tokens=5"});
  EXPECT_EQ(generated.status, 0) << generated.err;
  EXPECT_NE(generated.err.find("warning: skipped a damaged checkpoint"), std::string::npos) << generated.err;
  EXPECT_NE(generated.err.find("step_00000010/model.safetensors"), std::string::npos) << generated.err;
  ProgramResult resumed = train({"--train.steps=10", "--train.checkpoint_every=5"});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("warning: skipped a damaged checkpoint"), std::string::npos) << resumed.out;
  EXPECT_NE(resumed.out.find("resuming after step 5"), std::string::npos) << resumed.out;
  EXPECT_EQ(run({"eval", "run/checkpoints/step_00000010"}).status, 0);  // whole again
}

TEST_F(CliCheckpoint, AllDamaged) {
  ASSERT_EQ(train({"--train.steps=2"}).status, 0);
  flip_bit(folder_ / "run/checkpoints/step_00000002/optimizer.safetensors");
  std::string metrics = read_file(folder_ / "run/metrics.jsonl");
  expect_refused(train({"--train.steps=4"}),
                 {"expected a good checkpoint", "optimizer.safetensors", "another train.out"});
  EXPECT_EQ(read_file(folder_ / "run/metrics.jsonl"), metrics);
}

TEST_F(CliCheckpoint, ResumeWithAnotherWidth) {
  ASSERT_EQ(train({"--train.steps=2"}).status, 0);
  std::string metrics = read_file(folder_ / "run/metrics.jsonl"), config = read_file(folder_ / "run/config.json");
  expect_refused(train({"--train.steps=4", "--model.width=64"}),
                 {"expected model.width = 32", "got 64", "another --train.out"});
  EXPECT_EQ(read_file(folder_ / "run/metrics.jsonl"), metrics);
  EXPECT_EQ(read_file(folder_ / "run/config.json"), config);
  EXPECT_EQ(train({"--train.steps=4"}).status, 0);
}

TEST_F(CliCheckpoint, ResumeWithAnotherOptimizer) {
  ASSERT_EQ(train({"--train.steps=2"}).status, 0);
  expect_refused(train({"--train.steps=4", "--optimizer.name=sgd"}),
                 {"expected optimizer.name = \"adamw\"", "got \"sgd\"", "another --train.out"});
}

TEST_F(CliCheckpoint, AMeanOfTheWeightsThatNobodyKept) {
  ASSERT_EQ(train({"--train.steps=2"}).status, 0);
  expect_refused(train({"--train.steps=4", "--optimizer.ema=0.9"}),
                 {"expected optimizer.ema = 0", "without a mean of its weights, got 0.9", "another --train.out"});
  expect_refused(run({"eval", "run", "--weights=ema"}), {"[weights]", "optimizer.ema = 0", "--weights=last"});
  expect_refused(run({"generate", "run", "--weights=mean"}), {"--weights", "expected last or ema"});
}

TEST_F(CliCheckpoint, ResumeWithAnotherVocabulary) {
  ASSERT_EQ(train({"--train.steps=2", "--model.vocab=400"}).status, 0);
  write_file_quickly(folder_ / "other.txt", test::tiny_text(3000, 7) + "quite other words, zebra quokka zebra quokka");
  ASSERT_EQ(run({"prepare", "other.txt", "--out=other", "--vocab-size=290"}).status, 0);
  expect_refused(train({"--train.steps=4", "--model.vocab=400", "--data.path=other"}),
                 {"expected the vocabulary that", "got another one in other", "another --train.out"});
  expect_refused(run({"generate", "run", "--vocab=other"}), {"expected the tokenizer that", "other", "--vocab=DIR"});
}

TEST_F(CliCheckpoint, EvalWithAnotherVocabulary) {
  ASSERT_EQ(train({"--train.steps=2"}).status, 0);
  write_file_quickly(folder_ / "other.txt", test::tiny_text(3000, 7) + "quite other words, zebra quokka zebra quokka");
  ASSERT_EQ(run({"prepare", "other.txt", "--out=other", "--vocab-size=290"}).status, 0);
  expect_refused(run({"eval", "run", "--data=other"}),
                 {"expected the tokenizer that run/checkpoints", "another one in other", "--vocab=", "run/tokenizer"});
  EXPECT_EQ(run({"prepare", "other.txt", "--out=other", "--vocab=run/tokenizer"}).status, 0);
  EXPECT_EQ(run({"eval", "run", "--data=other"}).status, 0);
}

TEST_F(CliCheckpoint, EvalWithoutTheRunsData) {
  ASSERT_EQ(train({"--train.steps=2", "--data.tokenizer=data"}).status, 0);
  fs::rename(folder_ / "data", folder_ / "moved");
  expect_refused(run({"eval", "run"}), {"/data, which does not exist", "check the path"});
  EXPECT_EQ(run({"eval", "run", "--data=moved"}).status, 0);
  EXPECT_EQ(run({"eval", "run", "--data=text.txt"}).status, 0) << "with the run's tokenizer";
}

TEST_F(CliCheckpoint, NamesThatAreNotUtf8) {
  const std::string data = "d\xe9", out = "r\xe9n";
  fs::rename(folder_ / "data", folder_ / data);
  for (int steps : {2, 4})
    ASSERT_EQ(train({"--data.path=" + data, "--train.out=" + out, fmt::format("--train.steps={}", steps)}).status, 0);
  for (const std::vector<std::string>& command : {std::vector<std::string>{"generate", out, "--tokens=3"},
                                                  {"generate", out, "--tokens=3", "--vocab=" + data},
                                                  {"eval", out, "--data=" + data},
                                                  {"eval", out, "--data=" + data, "--tokenizer=" + data},
                                                  {"data", "ledger", out},
                                                  {"data", "inspect", data}}) {
    ProgramResult result = run(command);
    EXPECT_EQ(result.status, 0) << command[0] << result.err;
  }
  for (const char* command : {"eval", "train"})
    expect_refused(run({command, out}), {"does not exist", "keep no names that are not UTF-8", "--data.path"});
}

TEST_F(CliCheckpoint, GeneratesTextsSideBySide) {
  ASSERT_EQ(train({"--train.steps=2"}).status, 0);
  write_file_quickly(folder_ / "prompts.txt", "\xef\xbb\xbfthe\n\nand so\n");
  std::string one_by_one;
  for (const char* prompt : {"the", "", "and so"})
    one_by_one += (one_by_one.empty() ? "" : "---\n") +
                  run({"generate", "run", std::string("--prompt=") + prompt, "--tokens=6"}).out;
  ProgramResult together = run({"generate", "run", "--prompts=prompts.txt", "--tokens=6", "--rows=2"});
  EXPECT_EQ(together.status, 0) << together.err;
  EXPECT_EQ(together.out, one_by_one);
  EXPECT_NE(run({"generate", "run", "--prompt=the", "--samples=2", "--tokens=6"}).out.find("\n---\nthe"),
            std::string::npos);
  expect_refused(run({"generate", "run", "--prompts=prompts.txt", "--prompt=the"}),
                 {"[generate]", "--prompt or --prompts", "got both", "prompts.txt"});
  write_file_quickly(folder_ / "empty.txt", "");
  expect_refused(run({"generate", "run", "--prompts=empty.txt"}), {"[generate]", "empty.txt", "got an empty file"});
}

TEST_F(CliCheckpoint, GenerateWithoutACheckpoint) {
  fs::create_directory(folder_ / "hollow");
  expect_refused(run({"generate", "nowhere"}), {"nowhere", "expected a checkpoint", "got nothing", "check the path"});
  expect_refused(run({"generate", "hollow"}),
                 {"hollow", "expected a checkpoint", "got none of them", "check the path"});
  expect_refused(run({"eval", "hollow"}), {"hollow", "expected a checkpoint"});
  expect_refused(run({"eval", "text.txt"}), {"text.txt", "expected the folder of a checkpoint", "got a file"});
}

TEST_F(CliCheckpoint, GenerateWithoutATokenizer) {
  ASSERT_EQ(train({"--train.steps=1"}).status, 0);
  fs::create_directory(folder_ / "hollow");
  expect_refused(run({"generate", "run", "--prompt=the", "--vocab=hollow"}),
                 {"tokenizer.json", "hollow", "got none", "name the folder"});
  fs::rename(folder_ / "data", folder_ / "moved");
  fs::remove_all(folder_ / "run/tokenizer");
  expect_refused(run({"generate", "run", "--prompt=the"}),
                 {"[generate]", "run's tokenizer in", "data, got none", "check the path", "--vocab=DIR"});
  EXPECT_EQ(run({"generate", "run", "--prompt=the", "--vocab=moved", "--tokens=3"}).status, 0);
}

TEST_F(CliCheckpoint, FullDiskKeepsWhatWasSaved) {
  MountedFolder disk("size=1m");  // a checkpoint takes about half of it, two are kept while a third is written
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  std::vector<std::string> out = {"--train.out=" + disk.path().string(), "--train.checkpoint_every=2"};
  expect_refused(train(out),
                 {"could not be saved", "earlier checkpoints are as they were", "No space left", "free some space"});
  auto found = find_checkpoint(disk.path(), nullptr);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.step % 2, 0);
  out.push_back("--train.steps=" + std::to_string(found->state.step));
  ProgramResult resumed = train(out);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("resuming after step"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
