// `tokamak export` and `tokamak import`: a run's model as a folder by itself, and the way back.
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/expect_refused.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

class Export : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    ProgramResult trained = run(test::tiny_arguments("train", {"--data.path=data", "--train.steps=3"}));
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  ProgramResult run(const Arguments& arguments) { return run_program(folder_.path(), arguments); }
  std::string loss_of(const std::string& model, const Arguments& more = {}) {
    Arguments arguments{"eval", model, "--data=data", "--device=cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramResult result = run(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out.substr(result.out.find('\n'));
  }

  TemporaryFolder folder_;
};

TEST_F(Export, OutAndInAgainItIsTheSameModel) {
  ProgramResult out = run({"export", "run", "out", "--shard-mib=1"});
  ASSERT_EQ(out.status, 0) << out.err;
  EXPECT_NE(out.out.find("28 tensors, f32"), std::string::npos) << out.out;
  EXPECT_NE(out.out.find("a tokenizer of 301 tokens"), std::string::npos) << out.out;
  ASSERT_EQ(run({"import", "out", "in/deep"}).status, 0);
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}) {
    std::string saved = read_file(folder_ / "run/checkpoints/latest" / name);
    EXPECT_EQ(read_file(folder_ / "out" / name), saved) << name;
    EXPECT_EQ(read_file(folder_ / "in/deep" / name), saved) << name;
  }
  EXPECT_EQ(loss_of("in/deep"), loss_of("run"));
  ASSERT_EQ(run({"export", "run/checkpoints/latest", "half", "--type=bf16"}).status, 0);
  EXPECT_EQ(run({"generate", "half", "--prompt=the king", "--tokens=4", "--device=cpu"}).status, 0);
  EXPECT_EQ(run({"train", "--model.from=half", "--data.path=data", "--train.out=next", "--train.steps=1",
                 "--train.batch=2", "--train.eval_every=0"})
                .status,
            0);
}

TEST_F(Export, TakesTheMeanOfTheWeights) {
  ProgramResult trained = run(test::tiny_arguments(
      "train", {"--data.path=data", "--train.steps=3", "--train.out=mean", "--optimizer.ema=0.5"}));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(loss_of("mean"), loss_of("run")) << "it changes nothing of the training";
  std::string loss = loss_of("mean", {"--weights=ema"});
  EXPECT_NE(loss, loss_of("mean"));
  ASSERT_EQ(run({"export", "mean", "out", "--weights=ema"}).status, 0);
  EXPECT_EQ(loss_of("out"), loss);
  EXPECT_EQ(run({"generate", "mean", "--weights=ema", "--prompt=the king", "--tokens=4", "--device=cpu"}).status, 0);
}

TEST_F(Export, Mistakes) {
  ASSERT_EQ(run({"export", "run", "out"}).status, 0);
  std::string before = read_file(folder_ / "out/model.safetensors");
  expect_refused(run({"export", "run", "out", "--type=f16"}), {"[export] expected an empty folder", "--replace"});
  EXPECT_EQ(read_file(folder_ / "out/model.safetensors"), before);
  EXPECT_EQ(run({"export", "run", "out/", "--type=f16", "--replace"}).status, 0);
  expect_refused(run({"export", "run", "data", "--replace"}), {"expected only a model's files in", "move it away"});
  EXPECT_TRUE(fs::exists(folder_ / "data/index.json"));
  expect_refused(run({"export", "run", "text.txt"}), {"expected a folder or nothing", "got a file"});
  expect_refused(run({"import", "run", "x"}), {"[import] run: expected a folder with the config.json", "export"});
  expect_refused(run({"import", "absent", "x"}), {"got nothing; check the path"});
  expect_refused(run({"export", "absent", "x"}), {"absent", "got nothing"});
  expect_refused(run({"export", "run", "x", "--type=f8"}), {"type", "bf16"});
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

}  // namespace
}  // namespace tokamak
