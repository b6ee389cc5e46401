// Ranks that are stopped or hang: who is named, and that nobody is left.
#include <gtest/gtest.h>

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "checkpoint/checkpoint.h"
#include "tests/support/child_programs.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

using Arguments = std::vector<std::string>;

class Hangs : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  Arguments train(Arguments more = {}) const {
    more.insert(more.begin(), {"--data.path=data", "--train.out=mesh", "--train.batch=4", "--threads=1",
                               "--train.steps=1000000", "--mesh.data=2", "--mesh.hang_seconds=1"});
    return test::tiny_arguments("train", more);
  }
  int64_t saved_step() const {
    std::optional<FoundCheckpoint> newest = peek_checkpoint(folder_.path() / "mesh");
    return newest ? newest->state.step : 0;
  }
  static void expect_gone(const std::vector<pid_t>& ranks) {
    for (pid_t rank : ranks) EXPECT_TRUE(test::within(20, [&] { return !test::lives(rank); })) << ::kill(rank, SIGKILL);
  }

  TemporaryFolder folder_;
  Variable processes_{"TOKAMAK_RANKS", "processes"};
};

TEST_F(Hangs, ARankThatIsStoppedIsNamedAndTheStateSaved) {
  RunningProgram program(folder_.path(), train());
  ASSERT_TRUE(program.wait_for(" 5/1000000"));
  std::vector<pid_t> ranks = test::ranks_below(1);
  ::kill(ranks[0], SIGSTOP);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("error: [ranks] rank 1 on "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("(CPU) hangs: its process does not answer"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("; rank 0 on "), std::string::npos) << ended.err;
  EXPECT_GE(saved_step(), 5);
  expect_gone(ranks);
}

// Before it has joined, or at least before there are steps.
TEST_F(Hangs, ARankThatIsStoppedAtItsStartIsEndedAndTold) {
  RunningProgram program(folder_.path(), train());
  std::vector<pid_t> ranks = test::ranks_below(1);
  ::kill(ranks[0], SIGSTOP);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(ended.err.find("rank 1 was stopped, as by SIGSTOP,") != std::string::npos ||
              ended.err.find("rank 1 on ") != std::string::npos)
      << ended.err;
  expect_gone(ranks);
}

TEST_F(Hangs, ALeaderThatIsStoppedIsNamedAndEnded) {
  RunningProgram program(folder_.path(), train());
  ASSERT_TRUE(program.wait_for(" 5/1000000"));
  std::vector<pid_t> ranks = test::ranks_below(1);
  program.send(SIGSTOP);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, -SIGKILL);
  expect_gone(ranks);
  EXPECT_TRUE(program.wait_for_error("rank 1: error: [ranks] rank 0 on "));
  EXPECT_GE(saved_step(), 5) << "the other rank has all of the state";
}

// As Ctrl-Z and fg do.
TEST_F(Hangs, ARunThatIsStoppedAsAWholeGoesOn) {
  RunningProgram program(folder_.path(), train());
  ASSERT_TRUE(program.wait_for(" 5/1000000"));
  std::vector<pid_t> ranks = test::ranks_below(1);
  auto all = [&](int number) {
    for (pid_t rank : ranks) ::kill(rank, number);
    program.send(number);
  };
  all(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(6));
  all(SIGCONT);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  program.send(SIGTERM);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.err;
  expect_gone(ranks);
}

TEST_F(Hangs, OneRequestToStopIsEnoughBesideARankThatHangs) {
  RunningProgram program(folder_.path(), train({"--mesh.hang_seconds=1000"}));
  ASSERT_TRUE(program.wait_for(" 5/1000000"));
  std::vector<pid_t> ranks = test::ranks_below(1);
  ::kill(ranks[0], SIGSTOP);
  program.send(SIGTERM);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("rank 1 on "), std::string::npos) << ended.err;
  EXPECT_GE(saved_step(), 5);
  expect_gone(ranks);
}

// The first start, a validation that takes hundreds of steps, samples and saves.
TEST_F(Hangs, WhatTakesLongIsNoHang) {
  RunningProgram program(folder_.path(),
                         train({"--train.steps=60", "--train.eval_every=20", "--train.eval_batches=2000",
                                "--train.sample_every=20", "--train.checkpoint_every=10"}));
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
}

// By thread of a process: how long it has computed, in ticks of the system.
std::map<pid_t, int64_t> ticks_of_threads(pid_t process) {
  constexpr int kBefore = 11;  // fields behind the name that come before
  std::map<pid_t, int64_t> ticks;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream file(thread.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), {}), field;
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    for (int i = 0; i < kBefore; ++i) fields >> field;
    fields >> ticks[pid_t(std::stoi(thread.path().filename()))];
  }
  return ticks;
}

// That which takes steps.
pid_t busiest_thread(pid_t process) {
  std::map<pid_t, int64_t> before = ticks_of_threads(process);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  pid_t busiest = process;
  int64_t most = -1;
  for (const auto& [thread, ticks] : ticks_of_threads(process))
    if (ticks - before[thread] > most) most = ticks - before[thread], busiest = thread;
  return busiest;
}

// As a debugger does: all its other threads go on. One that is stopped while it waits for others does not hang for
// them, and says so to nobody: then another run is stopped.
TEST_F(Hangs, ARankOneThreadOfWhichNeverGoesOnIsNamed) {
  for (int tries_left = 5; tries_left > 0; --tries_left) {
    RunningProgram program(folder_.path(), train({"--model.width=64", "--train.total_batch=4096"}));
    ASSERT_TRUE(program.wait_for(" 3/1000000"));
    std::vector<pid_t> ranks = test::ranks_below(1);
    pid_t thread = busiest_thread(ranks[0]);
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) GTEST_SKIP() << "this machine allows no debugger";
    ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
    if (!program.wait_for_error("error: [ranks] rank 1 on ", 15) && tries_left > 1) {
      ::kill(ranks[0], SIGKILL);
      ::waitpid(thread, nullptr, __WALL);
      program.wait();
      std::filesystem::remove_all(folder_.path() / "mesh");
      continue;
    }
    EXPECT_TRUE(program.wait_for_error("hangs: it has been computing in step "));
    ProgramResult ended = program.wait();
    EXPECT_EQ(ended.status, 1) << ended.err;
    EXPECT_NE(ended.err.find("thread "), std::string::npos) << "the stacks of rank 1";
    while (::waitpid(thread, nullptr, __WALL) == thread) {  // the system keeps it for the debugger
    }
    return expect_gone(ranks);
  }
}

}  // namespace
}  // namespace tokamak
