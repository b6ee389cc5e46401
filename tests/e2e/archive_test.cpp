// Runs with a second folder for their checkpoints, whose own folder is lost.
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/verify.h"
#include "tests/e2e/finished_run.h"
#include "tests/support/expect_refused.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::expect_same;
using test::read_run;

class ArchivedRun : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  ProgramResult train(const std::string& out, std::vector<std::string> more) {
    more.insert(more.begin(), {"--data.path=data", "--train.out=" + out, "--train.batch=4", "--threads=1",
                               "--train.checkpoint_every=4"});
    return run_program(folder_.path(), test::tiny_arguments("train", more));
  }

  TemporaryFolder folder_;
};

TEST_F(ArchivedRun, GoesOnFromTheArchiveWhenItsFolderIsLost) {
  for (const char* mesh : {"--mesh.data=1", "--mesh.data=2"}) {
    SCOPED_TRACE(mesh);
    std::vector<std::string> options = {mesh, "--train.archive=slow", "--train.keep_checkpoints=9"};
    ASSERT_EQ(train("scratch", options).status, 0);
    test::FinishedRun straight = read_run(folder_ / "scratch", 20);
    verify_checkpoint(folder_ / "slow/checkpoints/step_00000020");
    // As if the machine had been lost before these were copied.
    for (const char* name : {"step_00000016", "step_00000020"}) fs::remove_all(folder_ / "slow/checkpoints" / name);
    fs::remove_all(folder_ / "scratch");
    ProgramResult second = train("scratch", options);
    EXPECT_EQ(second.status, 0) << second.err;
    // Where saves come faster than copies, the archive has fewer of them.
    EXPECT_NE(second.out.find("copied step_000000"), std::string::npos) << second.out;
    EXPECT_NE(second.out.find(" back from slow\nresuming after step "), std::string::npos) << second.out;
    expect_same(straight, read_run(folder_ / "scratch", 20));
    verify_checkpoint(folder_ / "slow/checkpoints/step_00000020");
    for (const char* name : {"scratch", "slow"}) fs::remove_all(folder_ / name);
  }
}

TEST_F(ArchivedRun, AnArchiveThatCannotBeWrittenEndsNoRun) {
  fs::create_directories(folder_ / "slow");
  std::ofstream(folder_ / "slow/checkpoints") << "a file";
  ProgramResult result = train("scratch", {"--train.archive=slow"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("warning: step_000000"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" is not in slow: "), std::string::npos) << result.out;
}

TEST_F(ArchivedRun, AFolderOfAnotherRunIsRefused) {
  ASSERT_EQ(train("first", {"--train.archive=slow"}).status, 0);
  expect_refused(train("second", {"--train.archive=slow", "--train.resume=false"}),
                 {"train.archive", "without checkpoints"});
  expect_refused(train("third", {"--train.archive=third"}), {"train.archive", "another folder than train.out"});
}

}  // namespace
}  // namespace tokamak
