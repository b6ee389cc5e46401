// Two `train` in one folder: the second is refused and the first is not disturbed. Readers disturb nobody.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

TEST(RunLock, TheSecondIsRefusedWithTheProcessOfTheFirst) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunningProgram first(folder.path(),
                       test::tiny_arguments("train", {"--train.steps=100000", "--train.checkpoint_every=5"}));
  ASSERT_TRUE(first.wait_for("\nsaved run/"));
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  ProgramResult second = run_program(folder.path(), test::tiny_arguments("train"));
  expect_refused(second, {"expected run for this run alone", "process ", std::string(" on ") + host, "--train.out"});
  first.send(SIGKILL);
  EXPECT_EQ(first.wait().status, -SIGKILL);
  ProgramResult third = run_program(folder.path(), test::tiny_arguments("train", {"--train.steps=5"}));
  EXPECT_EQ(third.status, 0) << third.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run/lock"));
}

// It removes the checkpoint that they have just found, again and again.
TEST(RunLock, ReadersAreNotDisturbedByATrainingThatSavesAllTheTime) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunningProgram training(folder.path(),
                          test::tiny_arguments("train", {"--train.steps=1000000", "--train.log_every=1000",
                                                         "--train.checkpoint_every=1", "--train.keep_checkpoints=1"}));
  ASSERT_TRUE(training.wait_for("\nsaved run/"));
  for (const char* path : {"run", "run/checkpoints/latest", "run"}) {
    ProgramResult result = run_program(folder.path(), {"generate", path, "--tokens=2"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }
}

}  // namespace
}  // namespace tokamak
