// events.jsonl of runs that end, are stopped, go on, and lose ranks.
#include <gtest/gtest.h>

#include <csignal>

#include "checkpoint/event_log.h"
#include "tests/support/child_programs.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

using Kind = RunEvent::Kind;

class Events : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  static std::vector<std::string> train(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--data.path=data", "--train.batch=4", "--threads=1"};
    all.insert(all.end(), more.begin(), more.end());
    return test::tiny_arguments("train", all);
  }
  std::vector<RunEvent> events() const { return read_events(folder_.path() / "run"); }
  std::vector<Kind> kinds() const {
    std::vector<Kind> kinds;
    for (const RunEvent& event : events()) kinds.push_back(event.kind);
    return kinds;
  }

  TemporaryFolder folder_;
};

TEST_F(Events, TellStartSavesAndEndAndLaterStartsAppend) {
  ProgramResult first = run_program(folder_.path(), train({"--train.checkpoint_every=10"}));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(kinds(), (std::vector<Kind>{Kind::kStart, Kind::kSave, Kind::kSave, Kind::kEnd}));
  std::vector<RunEvent> all = events();
  ASSERT_EQ(all[0].ranks.size(), 1u);
  EXPECT_FALSE(all[0].ranks[0].host.empty());
  EXPECT_EQ(all[1].checkpoint, "step_00000010");
  EXPECT_GT(all[1].bytes, 100'000) << "parameters and moments";
  EXPECT_GT(all[1].seconds, 0);
  EXPECT_GT(all[1].step_seconds, 0);
  EXPECT_EQ(all[3].step, 20);
  EXPECT_NE(first.out.find("\ngoodput "), std::string::npos) << first.out;
  EXPECT_EQ(first.out.find("goodput 0.0%"), std::string::npos) << first.out;

  EXPECT_EQ(run_program(folder_.path(), train({})).status, 0);
  EXPECT_EQ(kinds().size(), 4u) << "there was nothing to do";
  ProgramResult second = run_program(folder_.path(), train({"--train.steps=25"}));
  EXPECT_EQ(second.status, 0) << second.err;
  ASSERT_EQ(kinds().size(), 7u);
  EXPECT_EQ(events()[4].kind, Kind::kStart);
  EXPECT_EQ(events()[4].step, 20);
  EXPECT_NE(second.out.find(", 2 starts"), std::string::npos) << second.out;
}

TEST_F(Events, TellAStop) {
  RunningProgram program(folder_.path(), train({"--train.steps=1000000"}));
  ASSERT_TRUE(program.wait_for(" 2/1000000"));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().status, 128 + SIGTERM);
  EXPECT_EQ(kinds(), (std::vector<Kind>{Kind::kStart, Kind::kSave, Kind::kStop}));
}

TEST_F(Events, TellWhyARunFailedAndWhatWasSavedThen) {
  Variable processes("TOKAMAK_RANKS", "processes");
  RunningProgram program(folder_.path(), train({"--train.steps=1000000", "--mesh.data=2"}));
  ASSERT_TRUE(program.wait_for(" 2/1000000"));
  for (pid_t rank : test::ranks_below(1)) ::kill(rank, SIGKILL);
  EXPECT_EQ(program.wait().status, 1);
  ASSERT_EQ(kinds(), (std::vector<Kind>{Kind::kStart, Kind::kFailure, Kind::kSave}));
  EXPECT_EQ(events()[0].ranks.size(), 2u);
  EXPECT_NE(events()[1].cause.find("rank 1 on "), std::string::npos);
  EXPECT_GE(events()[2].step, 2);
}

TEST_F(Events, AreTakenOverByTheRankThatSavesWhenTheLeaderIsGone) {
  Variable processes("TOKAMAK_RANKS", "processes");
  RunningProgram program(folder_.path(), train({"--train.steps=1000000", "--mesh.data=2"}));
  ASSERT_TRUE(program.wait_for(" 2/1000000"));
  std::vector<pid_t> ranks = test::ranks_below(1);
  program.send(SIGKILL);
  program.wait();
  for (pid_t rank : ranks) EXPECT_TRUE(test::within(20, [&] { return !test::lives(rank); }));
  EXPECT_EQ(kinds(), (std::vector<Kind>{Kind::kStart, Kind::kFailure, Kind::kSave}));
}

TEST_F(Events, AreNoReasonToEndARun) {
  std::filesystem::create_directories(folder_ / "run/events.jsonl");
  ProgramResult result = run_program(folder_.path(), train({}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("warning: cannot write run/events.jsonl"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace tokamak
