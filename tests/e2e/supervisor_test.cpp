// Runs that start again by themselves when their processes die or hang.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "checkpoint/event_log.h"
#include "tests/support/child_programs.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

using Arguments = std::vector<std::string>;
using Kind = RunEvent::Kind;

class Supervised : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  static Arguments train(const std::string& out, int steps, Arguments more = {}) {
    more.insert(more.begin(), {"--data.path=data", "--train.out=" + out, "--train.batch=4", "--threads=1",
                               "--train.checkpoint_every=50", "--train.steps=" + std::to_string(steps)});
    return test::tiny_arguments("train", more);
  }
  // The process that trains, as soon as its run has done this step.
  pid_t trains_beyond(int64_t step) const {
    EXPECT_TRUE(test::within(60, [&] { return step == 0 || last_step() > step; })) << last_step();
    return test::ranks_below(1)[0];
  }
  int64_t last_step() const {
    std::ifstream file(folder_.path() / "run/metrics.jsonl");
    int64_t step = 0;
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("{\"step\":")) step = std::atoll(line.c_str() + 8);
    return step;
  }
  int restarts() const {
    int count = 0;
    for (const RunEvent& event : read_events(folder_.path() / "run")) count += event.kind == Kind::kRestart;
    return count;
  }
  void expect_same_parameters(const std::string& step) const {
    for (const char* file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_TRUE(read_file(folder_.path() / "run/checkpoints" / step / file, kLargeFile) ==
                  read_file(folder_.path() / "straight/checkpoints" / step / file, kLargeFile))
          << file;
  }

  TemporaryFolder folder_;
};

TEST_F(Supervised, ARunWhoseProcessIsKilledGoesOnToTheSameBits) {
  ASSERT_EQ(run_program(folder_.path(), train("straight", 1500)).status, 0);
  RunningProgram program(folder_.path(), train("run", 1500, {"--restarts=3"}));
  for (int64_t step : {60, 300}) {
    pid_t trains = trains_beyond(step);
    ::kill(trains, SIGKILL);
    ASSERT_TRUE(test::within(20, [&] { return !test::lives(trains); }));
    ASSERT_TRUE(program.wait_for_error("starting again, from the newest good checkpoint: "));
    ASSERT_TRUE(test::within(20, [&] { return restarts() == (step == 60 ? 1 : 2); }));
  }
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.err.find("the process that trains was ended by signal 9 (Killed)"), std::string::npos) << ended.err;
  EXPECT_NE(ended.out.find(", 3 starts"), std::string::npos) << ended.out;
  expect_same_parameters("step_00001500");
}

TEST_F(Supervised, ARunThatLosesARankGoesOnToTheSameBits) {
  ASSERT_EQ(run_program(folder_.path(), train("straight", 600, {"--mesh.data=2"})).status, 0);
  Variable processes("TOKAMAK_RANKS", "processes");
  RunningProgram program(folder_.path(), train("run", 600, {"--mesh.data=2", "--restarts=3", "--mesh.hang_seconds=1"}));
  auto rank_of = [](pid_t leader) { return test::children_of(std::to_string(leader)).at(0); };
  ::kill(rank_of(trains_beyond(20)), SIGKILL);
  ASSERT_TRUE(test::within(30, [&] { return restarts() == 1; }));
  ASSERT_TRUE(test::within(30, [&] { return last_step() > 100; }));
  ::kill(rank_of(trains_beyond(100)), SIGSTOP);
  ASSERT_TRUE(test::within(30, [&] { return restarts() == 2; }));
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.err.find("hangs: its process does not answer"), std::string::npos) << ended.err;
  expect_same_parameters("step_00000600");
}

TEST_F(Supervised, ARunThatDiesTwiceInAStepStopsAndNamesItsData) {
  RunningProgram program(folder_.path(), train("run", 1000000, {"--restarts=9"}));
  pid_t first = trains_beyond(0);
  ::kill(first, SIGKILL);
  ASSERT_TRUE(program.wait_for_error("starting again"));
  pid_t second = first;
  ASSERT_TRUE(test::within(20, [&] {
    std::vector<pid_t> programs = test::children_of("self");
    std::vector<pid_t> below = programs.size() == 1 ? test::children_of(std::to_string(programs[0])) : programs;
    if (below.size() == 1) second = below[0];
    return second != first;
  }));
  ::kill(second, SIGKILL);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("error: [restarts] expected the run to get beyond step 1, but it died there twice"),
            std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("`tokamak data ledger run --step=1`"), std::string::npos) << ended.err;
}

TEST_F(Supervised, AProcessThatIsStoppedIsKilledAndStartedAgain) {
  RunningProgram program(folder_.path(), train("run", 1000000, {"--restarts=9"}));
  pid_t trains = trains_beyond(5);
  ::kill(trains, SIGSTOP);
  EXPECT_TRUE(program.wait_for_error("starting again"));
  EXPECT_FALSE(test::lives(trains));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().status, 128 + SIGTERM);
}

TEST_F(Supervised, RestartsAreCounted) {
  RunningProgram program(folder_.path(), train("run", 1000000, {"--restarts=1"}));
  ::kill(trains_beyond(10), SIGKILL);
  ASSERT_TRUE(test::within(20, [&] { return restarts() == 1; }));
  ASSERT_TRUE(test::within(20, [&] { return last_step() > 200; }));
  ::kill(trains_beyond(200), SIGKILL);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("error: [restarts] expected at most 1 restarts in an hour"), std::string::npos) << ended.err;
}

TEST_F(Supervised, AMistakeOfTheUserIsNoReasonToStartAgain) {
  ProgramResult ended = run_program(folder_.path(), train("run", 10, {"--restarts=9", "--data.path=absent"}));
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.err.find("starting again"), std::string::npos) << ended.err;
}

TEST_F(Supervised, ARequestToStopIsPassedOn) {
  RunningProgram program(folder_.path(), train("run", 1000000, {"--restarts=9"}));
  pid_t trains = trains_beyond(5);
  program.send(SIGTERM);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.err;
  EXPECT_FALSE(test::lives(trains));
  EXPECT_NE(ended.out.find("stopped after step "), std::string::npos) << ended.out;
}

TEST_F(Supervised, NoProcessOutlivesTheSupervisor) {
  RunningProgram program(folder_.path(), train("run", 1000000, {"--restarts=9"}));
  pid_t trains = trains_beyond(5);
  program.send(SIGKILL);
  EXPECT_TRUE(test::within(20, [&] { return !test::lives(trains); })) << ::kill(trains, SIGKILL);
}

}  // namespace
}  // namespace tokamak
