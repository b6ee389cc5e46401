// Mistakes that configuration and files tell are refused before a device is opened and measured.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/file_lock.h"
#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::tiny_arguments;

class CliEarly : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  ProgramResult train(const std::vector<std::string>& more) {
    return run_program(folder_.path(), tiny_arguments("train", more));
  }
  // What was measured is the first thing that is said.
  void expect_refused_early(const std::vector<std::string>& more, std::initializer_list<std::string> pieces) {
    ProgramResult result = train(more);
    expect_refused(result, pieces);
    EXPECT_EQ(result.out, "");
  }

  TemporaryFolder folder_;
};

TEST_F(CliEarly, FolderThatCannotBeMade) {
  write_file_quickly(folder_ / "file", "");
  expect_refused_early({"--train.out=file"}, {"cannot make the folder file", "not a folder"});
  expect_refused_early({"--train.out=file/run"}, {"cannot make the folder file/run", "not a folder"});
  expect_refused_early({"--train.out="}, {"[train.out]", "expected a folder"});
}

TEST_F(CliEarly, Names) {
  expect_refused_early({"--optimizer.name=adam"}, {"[optimizer.name]", "adamw"});
  expect_refused_early({"--optimizer.groups=wtf*: lr=2"}, {"[optimizer.groups]", "'wtf*'", "did you mean 'wte'?"});
  expect_refused_early({"--optimizer.groups=wte* lr=2"}, {"[optimizer.groups]", "there is no colon"});
  expect_refused_early({"--compile.disable_passes=fuze"}, {"[compile.disable_passes]", "'fuze'", "'fuse'"});
  expect_refused_early({"--model.family=gpt"}, {"[model.family]", "gpt2"});
}

TEST_F(CliEarly, Data) {
  expect_refused_early({"--data.path=text.txt"}, {"[model.vocab]", "text.txt does not tell it", "--data.tokenizer"});
  expect_refused_early({"--data.path=text.txt", "--model.vocab=300"},
                       {"expected a tokenizer for the text of text.txt"});
  expect_refused_early({"--data.tokenizer=nowhere"}, {"[tokenizer]", "nowhere, which does not exist"});
  expect_refused_early({"--model.vocab=100"}, {"vocabulary is too small for the data"});
  expect_refused_early({"--model.context=50000"}, {"expected at least 50001 tokens", "lower model.context"});
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(CliEarly, WhatGoesByValidationsNeedsThem) {
  expect_refused_early({"--train.patience=2"},
                       {"[train.patience] expected validations (train.eval_every)", "got none"});
  expect_refused_early({"--train.keep_best"}, {"[train.keep_best] expected validations (train.eval_every)"});
  expect_refused_early(
      {"--train.keep_best", "--train.eval_every=2", "--data.path=data/train_*.bin", "--model.vocab=301"},
      {"[train.keep_best] expected data for validations", "--data.val_path"});
}

TEST_F(CliEarly, TokensThatTheModelLacks) {
  auto write = [&](const char* name, uint16_t token) {
    std::string bytes;
    for (int i = 0; i < 5000; ++i) bytes.append(reinterpret_cast<const char*>(&token), sizeof token);
    write_file_quickly(folder_ / name, bytes);
  };
  write("good.raw", 5);
  write("bad.raw", 300);
  expect_refused_early({"--data.format=raw", "--data.path=good.raw,bad.raw", "--model.vocab=256"},
                       {"bad.raw: token 0", "token ids below 256", "got 300"});
  expect_refused_early({"--data.format=raw", "--data.path=good.raw", "--data.val_path=bad.raw", "--model.vocab=256",
                        "--train.eval_every=5"},
                       {"bad.raw: token 0", "token ids below 256", "got 300"});
  expect_refused_early({"--data.format=raw", "--data.path=good.raw", "--model.vocab=256", "--data.mask_documents"},
                       {"[data.mask_documents]"});
  // Data of nothing but ends of documents: there is nothing to learn, or to measure.
  write("ends.raw", 7);
  const std::string mask = "--data.mask_documents", end = "--data.end_of_text=7";
  expect_refused_early({"--data.format=raw", "--data.path=ends.raw", "--model.vocab=256", mask, end},
                       {"ends.raw", "targets that count", "got none", "mask_documents"});
  expect_refused_early({"--data.format=raw", "--data.path=good.raw", "--data.val_path=ends.raw", "--model.vocab=256",
                        "--train.eval_every=5", mask, end},
                       {"ends.raw", "targets that count", "got none", "mask_documents"});
}

TEST_F(CliEarly, FolderThatAnotherTrainsIn) {
  fs::create_directory(folder_ / "run");
  FileLock other(folder_ / "run/lock");
  expect_refused_early({"--train.out=run"}, {"expected run for this run alone", "process ", "--train.out"});
}

TEST_F(CliEarly, OneGpuForSeveralRanks) {
  expect_refused_early({"--device=cuda:3", "--mesh.data=2"},
                       {"[device]", "for 2 ranks", "got 'cuda:3'", "CUDA_VISIBLE_DEVICES"});
}

TEST_F(CliEarly, RunThatDoesNotGoOnSo) {
  ASSERT_EQ(train({"--train.out=run", "--train.steps=1"}).status, 0);
  for (auto [setting, value] : {std::pair{"model.layers", "3"},
                                {"model.heads", "4"},
                                {"model.width", "64"},
                                {"model.context", "8"},
                                {"model.vocab", "400"},
                                {"model.bias", "false"},
                                {"model.tie_weights", "false"},
                                {"optimizer.name", "sgd"},
                                {"train.seed", "5"}})
    expect_refused_early(
        {"--train.out=run", std::string("--") + setting + "=" + value},
        {std::string("expected ") + setting, "with which the run in run began", "another --train.out"});
  expect_refused_early({"--train.out=run", "--data.path=data,data"}, {"as many entries of data.path"});
  EXPECT_EQ(train({"--train.out=run", "--train.steps=2"}).status, 0);
}

}  // namespace
}  // namespace tokamak
