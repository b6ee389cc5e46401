// A request to stop while a step runs that takes long: nobody waits for its end, and nothing is lost but its work.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "checkpoint/checkpoint.h"
#include "tests/e2e/finished_run.h"
#include "tests/support/child_programs.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

using std::chrono::seconds;

class LongStep : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  // A step of 400 micro-batches, and of half a minute or more.
  RunningProgram start() {
    return {folder_.path(),
            test::tiny_arguments("train", {"--train.out=long", "--train.steps=3", "--model.width=256",
                                           "--model.context=256", "--train.batch=8", "--train.total_batch=819200"})};
  }

  TemporaryFolder folder_;
};

TEST_F(LongStep, EndsBetweenTwoOfItsKernels) {
  RunningProgram program = start();
  ASSERT_TRUE(program.wait_for("steps"));  // the outline, behind which the first step comes
  std::this_thread::sleep_for(seconds(2));
  auto sent = std::chrono::steady_clock::now();
  program.send(SIGTERM);
  ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.status, 128 + SIGTERM) << stopped.err;
  EXPECT_NE(stopped.out.find("stopped after step 0 of 3"), std::string::npos) << stopped.out;
  EXPECT_LT(std::chrono::steady_clock::now() - sent, seconds(20));  // not the step's time
}

// A step that is not so long alone, but for the time that is left until a kill.
TEST_F(LongStep, EndsEarlierWhereAKillIsNear) {
  RunningProgram program(
      folder_.path(),
      test::tiny_arguments("train", {"--train.out=near", "--train.steps=3", "--model.width=256", "--model.context=256",
                                     "--train.batch=8", "--train.total_batch=32768", "--train.grace_seconds=1"}));
  ASSERT_TRUE(program.wait_for("steps"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // a step has begun, and takes seconds
  program.send(SIGTERM);
  ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.status, 128 + SIGTERM) << stopped.err;
  EXPECT_NE(stopped.out.find("stopped after step 0 of 3"), std::string::npos) << stopped.out;
}

// What is left of it is not waited for when a rank is lost, nor is it by a rank that cannot save.
TEST_F(LongStep, EndsWhenAnotherRankIsLost) {
  Variable processes("TOKAMAK_RANKS", "processes");
  for (const char* zero : {"0", "2"}) {
    RunningProgram program(
        folder_.path(),
        test::tiny_arguments("train", {"--train.out=lost", "--train.steps=3", "--model.width=256",
                                       "--model.context=256", "--train.batch=8", "--train.total_batch=819200",
                                       "--mesh.data=2", std::string("--mesh.zero=") + zero}));
    ASSERT_TRUE(program.wait_for("steps"));
    std::this_thread::sleep_for(seconds(2));
    auto killed = std::chrono::steady_clock::now();
    ::kill(test::ranks_below(1)[0], SIGKILL);
    ProgramResult ended = program.wait();
    EXPECT_EQ(ended.status, 1) << ended.err;
    EXPECT_NE(ended.err.find("rank 1 on "), std::string::npos) << ended.err;
    EXPECT_LT(std::chrono::steady_clock::now() - killed, seconds(20));  // not the step's time
  }
}

}  // namespace
}  // namespace tokamak
