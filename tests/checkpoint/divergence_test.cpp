#include "checkpoint/divergence.h"

#include <gtest/gtest.h>

#include "checkpoint/checkpoint_folder.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

// What is told of a run with checkpoints of these steps that diverged in step 21.
class Divergence : public testing::Test {
 protected:
  std::string advice(const std::vector<int64_t>& steps, const std::string& change = "") {
    for (int64_t step : steps)
      std::filesystem::create_directories(checkpoints_folder(folder_.path()) / checkpoint_name(step));
    return advise_after_divergence(folder_.path(), 21, change);
  }
  static bool has(const std::string& text, const char* piece) { return text.find(piece) != std::string::npos; }

  TemporaryFolder folder_;
};

TEST_F(Divergence, PromisesNoCheckpointWhereThereIsNone) {
  std::string text = advice({});
  EXPECT_TRUE(has(text, "has no checkpoint, so the same command begins anew; run it with a lower")) << text;
}

TEST_F(Divergence, NamesThoseBeforeByStep) {
  std::string text = advice({10, 19});
  EXPECT_TRUE(has(text, "has the checkpoints of steps 10, 19; the same command goes on after step 19")) << text;
  EXPECT_TRUE(has(text, "with a lower --optimizer.lr")) << text;
}

// That of step 20 has the parameters with which step 21 began.
TEST_F(Divergence, GoesOnFromNoneThatGivesItAgain) {
  for (const std::vector<int64_t>& steps : {std::vector<int64_t>{20}, {30}}) {
    std::string text = advice(steps);
    EXPECT_TRUE(has(text, "has only the checkpoint of step")) << text;
    EXPECT_TRUE(has(text, "begin anew with --train.resume=false")) << text;
    EXPECT_FALSE(has(text, "goes on")) << text;
    std::filesystem::remove_all(checkpoints_folder(folder_.path()));
  }
}

TEST_F(Divergence, TellsThemApart) {
  std::string text = advice({10, 20, 30});
  EXPECT_TRUE(
      has(text, "has the checkpoint of step 10, and the checkpoints of steps 20, 30, with parameters that led to it"))
      << text;
  EXPECT_TRUE(has(text, "remove these: the same command then goes on after step 10")) << text;
}

TEST_F(Divergence, KnowsWhatHelpsWithoutGoingBack) {
  std::string text = advice({10, 30}, "with --compile.precision=bf16");
  EXPECT_TRUE(has(text, "go on from there with --compile.precision=bf16, or remove that one")) << text;
}

}  // namespace
}  // namespace tokamak
