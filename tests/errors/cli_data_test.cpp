// Mistakes with text and token shards, through the program itself.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "data/prepare_folder.h"
#include "data/token_shard_index.h"
#include "data/tokenizer_files.h"
#include "tests/support/expect_refused.h"
#include "tests/support/mounted_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::tiny_arguments;

class CliData : public testing::Test {
 protected:
  ProgramResult run(const std::vector<std::string>& arguments) { return run_program(folder_.path(), arguments); }
  ProgramResult train(const std::vector<std::string>& more = {}) { return run(tiny_arguments("train", more)); }

  /// Damages the training shard of the tiny data, trains, puts the shard back and sees that training works then.
  void expect_damage_refused(const std::string& bytes, std::initializer_list<std::string> pieces) {
    fs::path shard = folder_ / "data" / read_token_shard_index(folder_ / "data").train.shards.at(0).file;
    std::string good = read_file(shard);
    write_file_quickly(shard, bytes.empty() ? good.substr(0, good.size() - 100) : bytes + good.substr(bytes.size()));
    expect_refused(train({"--train.steps=1"}), pieces);
    write_file_quickly(shard, good);
    ProgramResult result = train({"--train.steps=1"});
    EXPECT_EQ(result.status, 0) << result.err;
  }

  TemporaryFolder folder_;
};

TEST_F(CliData, MissingFile) {
  expect_refused(run({"prepare", "nowhere.txt"}), {"nowhere.txt", "does not exist", "check the path"});
  EXPECT_FALSE(fs::exists(folder_ / "data"));
}

TEST_F(CliData, EmptyFile) {
  write_file_quickly(folder_ / "empty.txt", "");
  expect_refused(run({"prepare", "empty.txt"}),
                 {"expected text or tokens in empty.txt", "got an empty file", "name another file"});
}

TEST_F(CliData, LinkThatLeadsInCircles) {
  fs::create_symlink("loop.txt", folder_ / "loop.txt");
  for (const char* command : {"prepare", "train"})
    expect_refused(command == std::string("train") ? train({"--data.path=loop.txt"}) : run({"prepare", "loop.txt"}),
                   {"[file] cannot use loop.txt", "Too many levels of symbolic links", "check the path"});
}

TEST_F(CliData, EmptyFolder) {
  fs::create_directory(folder_ / "corpus");
  expect_refused(run({"prepare", "corpus"}), {"expected files of these names in corpus", "*.txt, *.md, *.jsonl",
                                              "*.tgz, *.bin, *.npy", "got none"});
}

// Each of them would wait for somebody to write.
TEST_F(CliData, PipesThatNobodyWrites) {
  test::make_tiny_data(folder_.path());
  ASSERT_EQ(train({"--train.steps=1"}).status, 0);
  fs::create_directory(folder_ / "vocab");
  for (const char* name : {"pipe", "pipe.npy", "pipe.bin", "pipe.jsonl", "vocab/tokenizer.json"})
    ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
  for (const char* name : {"pipe", "pipe.npy", "pipe.bin", "pipe.jsonl", "pip*"}) {
    expect_refused(run({"prepare", name, "--out=other", "--vocab=data"}), {"got the pipe pipe", "standard input"});
    expect_refused(run({"data", "inspect", name}), {"got the pipe pipe"});
    expect_refused(train({fmt::format("--data.path={}", name), "--data.tokenizer=data", "--train.out=new"}),
                   {"got the pipe pipe"});
    expect_refused(run({"eval", "run", fmt::format("--data={}", name)}), {"got the pipe pipe"});
  }
  EXPECT_FALSE(fs::exists(folder_ / "other"));
  expect_refused(run({"prepare", "text.txt", "--out=other", "--vocab=pipe"}), {"pipe"});
  expect_refused(run({"generate", "run", "--vocab=vocab"}), {"tokenizer.json", "it is a pipe"});
  expect_refused(run({"generate", "run", "--prompts=pipe"}), {"pipe", "it is a pipe"});
  expect_refused(run({"train", "pipe"}), {"pipe", "it is a pipe"});
  for (const char* name : {"data/index.json", "data/tokenizer.json", "run/config.json", "run/metrics.jsonl",
                           "run/ledger.jsonl", "run/tokenizer/tokenizer.json"}) {
    fs::rename(folder_ / name, folder_ / "good");
    ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
    ProgramResult result = std::string(name) == "run/config.json"   ? run({"train", "run"})
                           : std::string(name).starts_with("run/t") ? run({"generate", "run"})
                                                                    : train({"--train.steps=2"});
    expect_refused(result, {name, "it is a pipe"});
    fs::rename(folder_ / "good", folder_ / name);
  }
}

TEST_F(CliData, AMistakeKeepsEarlierData) {
  test::make_tiny_data(folder_.path());
  std::string index = read_file(folder_ / "data" / "index.json");
  write_file_quickly(folder_ / "bad.jsonl", "{\"text\": \"fine\"}\n{\"body\": \"lacks the field\"}\n");
  expect_refused(run({"prepare", "bad.jsonl"}), {"bad.jsonl", "2", "text"});
  EXPECT_EQ(read_file(folder_ / "data" / "index.json"), index);
  EXPECT_EQ(train({"--train.steps=1"}).status, 0);
}

TEST_F(CliData, UnknownFormat) {
  expect_refused(run({"prepare", "x.avro", "--format=avro"}), {"--format", "auto, text, jsonl", "avro"});
}

TEST_F(CliData, AVocabularyHasItsSize) {
  expect_refused(run({"prepare", "x.txt", "--vocab=gpt2", "--vocab-size=300"}), {"--vocab-size", "gpt2 and 300"});
}

TEST_F(CliData, TokensNeedTheirVocabulary) {
  test::make_tiny_data(folder_.path());
  expect_refused(run({"prepare", "data/train_000000.bin", "--out=copy"}),
                 {"train_000000.bin", "expected text to train a tokenizer on, got tokens", "--vocab"});
  write_file_quickly(folder_ / "small.txt", "a a a");
  ASSERT_EQ(run({"prepare", "small.txt", "--vocab-size=257", "--out=small"}).status, 0);
  expect_refused(run({"prepare", "data/train_000000.bin", "--vocab=small", "--out=copy"}),
                 {"train_000000.bin", "expected token ids from 0 to 256", "--vocab"});
  EXPECT_FALSE(fs::exists(folder_ / "copy"));
  ProgramResult copied = run({"prepare", "data/train_000000.bin", "--vocab=data", "--out=copy", "--val-fraction=0"});
  EXPECT_EQ(copied.status, 0) << copied.err;
  EXPECT_EQ(read_file(folder_ / "copy/train_000000.bin"), read_file(folder_ / "data/train_000000.bin"));
}

TEST_F(CliData, TwoRunsInOneFolder) {
  test::make_tiny_data(folder_.path());
  PrepareFolder other(folder_ / "data");
  expect_refused(run({"prepare", "text.txt"}), {"expected data for this run alone", "another `prepare`", "--out"});
}

TEST_F(CliData, TextThatIsNotUtf8IsBytes) {
  std::string text = "caf\xe9 \xff\xfe\x80 end";
  std::string repeated;
  for (int i = 0; i < 100; ++i) repeated += text + "\n";
  write_file_quickly(folder_ / "latin1.txt", repeated);
  ProgramResult prepared = run({"prepare", "latin1.txt", "--vocab-size=270"});
  EXPECT_EQ(prepared.status, 0) << prepared.err;
  EXPECT_EQ(train({"--train.steps=2"}).status, 0);
  ProgramResult ids = run_program(folder_.path(), {"tokenize", "--vocab=data"}, text);
  EXPECT_EQ(run_program(folder_.path(), {"tokenize", "--vocab=data", "--decode"}, ids.out).out, text);
}

TEST_F(CliData, VocabularyTooSmallForTheData) {
  test::make_tiny_data(folder_.path());
  int64_t vocab = read_token_shard_index(folder_ / "data").vocab_size;
  expect_refused(train({"--model.vocab=100"}),
                 {"vocabulary is too small for the data", fmt::format("at least {}", vocab), "got 100", "model.vocab"});
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(CliData, SequenceLongerThanTheData) {
  test::make_tiny_data(folder_.path());
  expect_refused(train({"--model.context=100000"}), {"expected at least 100001 tokens (model.context + 1)", "got",
                                                     "lower model.context", "prepare more text"});
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(CliData, OmpNumThreadsCounts) {
  test::make_tiny_data(folder_.path());
  for (auto [threads, said] : {std::pair{"1", ": 1 thread, "}, {"77", ": 77 threads, "}}) {
    ::setenv("OMP_NUM_THREADS", threads, 1);
    ProgramResult result = train({"--threads=0", "--train.steps=1"});
    ::unsetenv("OMP_NUM_THREADS");
    EXPECT_NE(result.out.find(said), std::string::npos) << result.out << result.err;
  }
}

// Stacks of 100 TiB cannot be had. Not only OpenMP's own message, which does not say what to do.
TEST_F(CliData, ThreadsThatCannotBeStarted) {
  test::make_tiny_data(folder_.path());
  ::setenv("OMP_STACKSIZE", "107374182400K", 1);
  ProgramResult result = train({"--threads=3"});
  ::unsetenv("OMP_STACKSIZE");
  if (result.status == 0) GTEST_SKIP() << "threads are not OpenMP's here";
  expect_refused(result, {"[threads]", "expected to start a thread", "--threads"});
}

TEST_F(CliData, FolderThatIsNotPrepared) {
  ProgramResult result = train({"--data.path=nowhere"});
  expect_refused(result, {"got nowhere", "does not exist", "tokamak prepare"});
  EXPECT_EQ(result.out, "") << "before the machine is measured";
}

TEST_F(CliData, ShardWithAWrongMagic) {
  test::make_tiny_data(folder_.path());
  expect_damage_refused("oops", {".bin", "expected", "20240520", "got"});
}

TEST_F(CliData, ShardCutShort) {
  test::make_tiny_data(folder_.path());
  expect_damage_refused("", {".bin", "expected", "got", "cut short"});
}

TEST_F(CliData, OutputThatIsAFile) {
  test::make_tiny_data(folder_.path());
  std::string text = read_file(folder_ / "text.txt");
  expect_refused(run({"prepare", "text.txt", "--out=text.txt"}), {"cannot make the folder text.txt", "check the path"});
  expect_refused(train({"--train.out=text.txt"}), {"text.txt", "check the path"});
  EXPECT_EQ(read_file(folder_ / "text.txt"), text);
}

TEST_F(CliData, ReadOnlyDisk) {
  MountedFolder disk("size=1m");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  ASSERT_TRUE(disk.make_read_only());
  test::make_tiny_data(folder_.path());
  expect_refused(train({"--train.out=" + (disk.path() / "run").string()}),
                 {"Read-only file system", "choose another path"});
}

}  // namespace
}  // namespace tokamak
