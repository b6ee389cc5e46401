// train.epochs and train.tokens, and what is said of a run's length.
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/expect_refused.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using Arguments = std::vector<std::string>;

class TrainLengthTest : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  ProgramResult train(const Arguments& more) {
    Arguments arguments = {"train", "--data.path=data", "--train.out=run"};
    for (const std::string& argument : test::tiny_arguments("train"))
      if (argument.starts_with("--") && !argument.starts_with("--train.steps")) arguments.push_back(argument);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(folder_.path(), arguments);
  }

  void expect_says(const ProgramResult& result, const std::string& text) {
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.out.find(text), std::string::npos) << result.out;
  }

  TemporaryFolder folder_;
};

TEST_F(TrainLengthTest, TokensAreStepsWhenTheRunBegins) {
  ProgramResult first = train({"--train.tokens=100"});
  expect_says(first, "steps 1 to 4 of 32 tokens: 128 tokens");
  ProgramResult same = train({"--train.steps=4"});
  expect_says(same, "nothing to do: 4 of 4 steps are done");
  EXPECT_EQ(same.out.find("changed since"), std::string::npos) << "the same length in other words: " << same.out;
  expect_says(train({"--train.tokens=161"}), "changed since step 4: train.steps 4 -> 6");
  expect_says(run_program(folder_.path(), {"train", "run"}), "nothing to do: 6 of 6 steps are done");
}

TEST_F(TrainLengthTest, AnEpochIsOnePassOverTheData) {
  ProgramResult first = train({"--train.epochs=1", "--train.batch=8"});
  expect_says(first, ", 1 epochs of");
  ProgramResult second = run_program(folder_.path(), {"train", "run", "--train.epochs=2"});
  expect_says(second, "the schedule (cosine) is now that of a run of");
}

TEST_F(TrainLengthTest, TwoOfThemAreRefused) {
  expect_refused(train({"--train.epochs=1", "--train.steps=5"}),
                 {"[--train.steps] expected either train.epochs or train.steps", "leave one out"});
  expect_refused(train({"--train.steps=0"}), {"[train.steps] expected the length of the run", "got none"});
}

TEST_F(TrainLengthTest, AWarmUpThatIsNotShorterIsTold) {
  expect_says(train({"--train.steps=3"}),
              "warning: the warm-up of 3 steps (optimizer.warmup_steps) is not shorter than "
              "the run of 3: the learning rate only rises, to 6.00e-04 of 6.00e-04");
  expect_says(train({"--train.steps=5", "--optimizer.schedule_steps=3"}),
              "is not shorter than the schedule of 3 (optimizer.schedule_steps): behind it the learning rate falls at "
              "once to 6.00e-05");
  EXPECT_EQ(train({"--train.steps=8"}).out.find("warm-up"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
