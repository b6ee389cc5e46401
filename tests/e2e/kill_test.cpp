// The program under real signals: nothing but the steps since the last checkpoint is ever lost.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "checkpoint/checkpoint.h"
#include "tests/e2e/finished_run.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using test::expect_same;
using test::read_run;
using test::tiny_arguments;

class KillTest : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  std::vector<std::string> train(const std::string& out, int64_t steps, std::vector<std::string> more = {}) {
    more.push_back("--train.out=" + out);
    more.push_back("--train.steps=" + std::to_string(steps));
    more.push_back("--model.dropout=0.1");
    return tiny_arguments("train", more);
  }

  /// Stops a long run with the signal, lets it go on, and compares it with one that never stopped.
  void expect_stops_politely(int signal_number) {
    constexpr int64_t kSteps = 500;
    RunningProgram program(folder_.path(), train("broken", kSteps));
    ASSERT_TRUE(program.wait_for("\nstep "));
    program.send(signal_number);
    ProgramResult stopped = program.wait();
    EXPECT_EQ(stopped.status, 128 + signal_number) << stopped.err;
    EXPECT_EQ(stopped.err, "finishing this step; again to quit now\n");
    for (const char* piece : {"stopped after step", "of 500", "the same command goes on from there", "broken"})
      EXPECT_NE(stopped.out.find(piece), std::string::npos) << stopped.out.substr(stopped.out.size() / 2);
    auto found = find_checkpoint(folder_ / "broken", nullptr);
    ASSERT_TRUE(found);
    EXPECT_GE(found->state.step, 1);
    EXPECT_LT(found->state.step, kSteps);
    std::string number = std::to_string(found->state.step);
    EXPECT_NE(stopped.out.find("stopped after step " + number + " of"), std::string::npos);

    ProgramResult rest = run_program(folder_.path(), train("broken", kSteps));
    EXPECT_EQ(rest.status, 0) << rest.err;
    EXPECT_NE(rest.out.find("resuming after step " + number), std::string::npos) << rest.out.substr(0, 300);
    ASSERT_EQ(run_program(folder_.path(), train("straight", kSteps)).status, 0);
    expect_same(read_run(folder_ / "straight", kSteps), read_run(folder_ / "broken", kSteps));
  }

  TemporaryFolder folder_;
};

TEST_F(KillTest, CtrlC) { expect_stops_politely(SIGINT); }

TEST_F(KillTest, Terminate) { expect_stops_politely(SIGTERM); }

TEST_F(KillTest, AClosedTerminal) { expect_stops_politely(SIGHUP); }

TEST_F(KillTest, KillAtRandomMoments) {
  constexpr int64_t kSteps = 60;
  constexpr int kKills = 6;
  std::vector<std::string> command = train("broken", kSteps, {"--train.checkpoint_every=2", "--train.total_batch=64"});
  unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int killed = 0;
  for (int i = 0; i < kKills; ++i) {
    RunningProgram program(folder_.path(), command);
    // A run that was killed right after its start begins anew, so the first checkpoint is waited for.
    program.wait_for(i == 0 ? "\nsaved broken/" : "resuming");
    // The first one at once: a fast machine needs little more than this for the rest.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % unsigned(1 + 10'000 * i)));
    program.send(SIGKILL);
    ProgramResult result = program.wait();
    if (result.status == 0) break;
    ++killed;
    ASSERT_EQ(result.status, -SIGKILL) << result.err;
    ASSERT_TRUE(find_checkpoint(folder_ / "broken", nullptr));
  }
  EXPECT_GE(killed, 1);
  ProgramResult last = run_program(folder_.path(), command);
  EXPECT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(last.out.find("warning"), std::string::npos) << last.out;  // a kill never damages a checkpoint
  ASSERT_EQ(run_program(folder_.path(), train("straight", kSteps, {"--train.total_batch=64"})).status, 0);
  expect_same(read_run(folder_ / "straight", kSteps), read_run(folder_ / "broken", kSteps));
}

}  // namespace
}  // namespace tokamak
