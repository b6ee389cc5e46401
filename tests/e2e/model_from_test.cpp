// Training that begins with the weights of another model (model.from), and models that eval and generate take as they
// are. With Transformers itself: tools/check_transformers.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>

#include "base/file.h"
#include "tests/support/expect_refused.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

class ModelFrom : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    ProgramResult trained =
        run(test::tiny_arguments("train", {"--data.path=data", "--train.out=first", "--optimizer.lr=1e-2"}));
    ASSERT_EQ(trained.status, 0) << trained.err;
    // As Transformers would have written it: no word of ours.
    fs::path checkpoint = fs::canonical(folder_ / "first/checkpoints/latest");
    fs::create_directory(folder_ / "model");
    for (const char* name : {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"})
      fs::copy(checkpoint / name, folder_ / "model" / name);
  }

  ProgramResult run(const Arguments& arguments) { return run_program(folder_.path(), arguments); }
  ProgramResult continued(Arguments more) {
    Arguments arguments = {"train",           "--data.path=data",     "--train.out=second",       "--train.steps=2",
                           "--train.batch=2", "--train.eval_every=0", "--compile.precision=fp32", "--optimizer.lr=0",
                           "--threads=2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  double loss(const std::string& out, size_t step) {
    std::ifstream file(folder_ / out / "metrics.jsonl");
    std::string line;
    for (size_t i = 0; i < step; ++i) std::getline(file, line);
    return nlohmann::json::parse(line).at("loss");
  }

  TemporaryFolder folder_;
};

TEST_F(ModelFrom, TrainingBeginsWithItsWeights) {
  ProgramResult begun = continued({"--model.from=model"});
  ASSERT_EQ(begun.status, 0) << begun.err;
  EXPECT_NE(begun.out.find("beginning with the weights of model"), std::string::npos) << begun.out;
  ASSERT_EQ(continued({"--train.out=third", "--model.from=first"}).status, 0) << "a run of ours";
  ASSERT_EQ(
      continued({"--train.out=fresh", "--model.layers=2", "--model.heads=2", "--model.width=32", "--model.context=16"})
          .status,
      0);
  EXPECT_EQ(loss("second", 1), loss("third", 1));
  EXPECT_LT(loss("second", 1), loss("fresh", 1) - 0.2);
}

// The weights are those of the run from then on.
TEST_F(ModelFrom, ARunThatGoesOnDoesNotBeginAgain) {
  ASSERT_EQ(continued({"--model.from=model", "--optimizer.lr=1e-2", "--train.checkpoint_every=1"}).status, 0);
  fs::remove_all(folder_ / "model");
  ProgramResult on = run({"train", "second", "--train.steps=4"});
  ASSERT_EQ(on.status, 0) << on.err;
  EXPECT_NE(on.out.find("resuming after step 2"), std::string::npos) << on.out;
}

TEST_F(ModelFrom, RanksTakeTheirShares) {
  ASSERT_EQ(continued({"--model.from=model", "--train.batch=4"}).status, 0);
  ASSERT_EQ(continued({"--model.from=model", "--train.batch=4", "--train.out=ranks", "--mesh.data=2", "--mesh.zero=3"})
                .status,
            0);
  EXPECT_NEAR(loss("ranks", 1), loss("second", 1), 1e-5);
}

TEST_F(ModelFrom, OtherSizesAndTokenizersAreRefused) {
  expect_refused(continued({"--model.from=model", "--model.layers=5"}),
                 {"[model.layers] expected 2, which the model in model has, got 5; leave it out"});
  expect_refused(continued({"--model.from=absent"}), {"absent", "got nothing"});
  ASSERT_EQ(run({"prepare", "text.txt", "--out=other", "--vocab_size=290"}).status, 0);
  expect_refused(continued({"--model.from=model", "--data.path=other"}),
                 {"[model.from] expected data of the tokenizer", "--vocab=model"});
}

// Its context is 16, that of the defaults 1024, of which these are no multiples; its heads are 2, not 12.
TEST_F(ModelFrom, WhatDependsOnSizesIsCheckedByItsOwn) {
  ASSERT_EQ(continued({"--model.from=model", "--train.total_batch=96"}).status, 0);
  expect_refused(continued({"--model.from=model", "--train.out=third", "--train.total_batch=2056"}),
                 {"[train.total_batch] expected a multiple of train.batch x model.context = 2 x 16 = 32 tokens"});
  expect_refused(continued({"--model.from=model", "--train.out=third", "--mesh.tensor=3"}),
                 {"[mesh.tensor] expected ranks that divide model.heads = 2, or at most a third more, got 3"});
  expect_refused(continued({"--model.from=model", "--train.out=third", "--train.batch=0"}), {"[--train.batch]"});
  expect_refused(run({"explain", "--model.from=model", "--train.batch=2", "--train.total_batch=2056"}),
                 {"2 x 16 = 32 tokens"});
}

TEST_F(ModelFrom, ASingleFileIsToldWhatToDo) {
  for (const char* name : {"pytorch_model.bin", "weights.pt", "x.pth", "last.ckpt"}) {
    write_file_quickly(folder_ / name, "PK");
    expect_refused(continued({std::string("--model.from=") + name}),
                   {name, "expected the folder of a checkpoint, a run or a model, got a file as PyTorch writes them",
                    "safe_serialization=True", "then name the folder with config.json and model.safetensors"});
  }
  for (const char* name : {"model/model.safetensors", "model/config.json"})
    expect_refused(continued({std::string("--model.from=") + name}), {name, "or a model, got a file; name the folder"});
}

TEST_F(ModelFrom, EvalAndGenerateTakeAFolderAsItIs) {
  ProgramResult own = run({"eval", "first", "--device=cpu"}),
                other = run({"eval", "model", "--data=data", "--device=cpu"});
  ASSERT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(own.out.substr(own.out.find('\n')), other.out.substr(other.out.find('\n')));
  Arguments prompt = {"--prompt=the king", "--tokens=8", "--device=cpu"}, from_run = {"generate", "first"},
            from_model = {"generate", "model"};
  from_run.insert(from_run.end(), prompt.begin(), prompt.end());
  from_model.insert(from_model.end(), prompt.begin(), prompt.end());
  EXPECT_EQ(run(from_run).out, run(from_model).out);
}

}  // namespace
}  // namespace tokamak
