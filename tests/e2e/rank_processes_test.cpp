// What befalls ranks that are processes: second jobs on their port, ends before they have met, launchers that are gone.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/system.h"
#include "tests/support/child_programs.h"
#include "tests/support/free_port.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

using Arguments = std::vector<std::string>;

class RankProcesses : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  static Arguments train(const std::string& out, Arguments more = {}) {
    more.insert(more.begin(),
                {"--data.path=data", "--train.out=" + out, "--train.batch=4", "--threads=1", "--train.steps=1000000"});
    return test::tiny_arguments("train", more);
  }
  // As someone does who sets the variables by hand.
  std::unique_ptr<RunningProgram> start(int rank, const Arguments& arguments) const {
    Variable own("RANK", std::to_string(rank)), local("LOCAL_RANK", std::to_string(rank));
    return std::make_unique<RunningProgram>(folder_.path(), arguments);
  }
  void expect_error(const std::string& text, int rank, const Arguments& arguments) const {
    ProgramResult result = start(rank, arguments)->wait();
    EXPECT_EQ(result.status, 1);
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  }
  // Two ranks below a shell that sets, for each of them, these variables to its number, and others.
  std::unique_ptr<RunningProgram> below_shell(const Arguments& numbers, const std::string& others) const {
    std::string script;
    for (const char* rank : {"0", "1"}) {
      for (const std::string& name : numbers) script += name + "=" + rank + " ";
      script += others + " \"$0\" \"$@\" & ";
    }
    return std::make_unique<RunningProgram>(folder_.path(), train("mesh"), "", ProgramStreams{},
                                            Arguments{"sh", "-c", script + "wait"});
  }

  TemporaryFolder folder_;
  Variable world_{"WORLD_SIZE", "2"}, address_{"MASTER_ADDR", "127.0.0.1"},
      port_{"MASTER_PORT", std::to_string(test::free_port())};
};

TEST_F(RankProcesses, ASecondJobOnThePortIsRefusedAndTheFirstGoesOn) {
  auto first = start(0, train("mesh")), second = start(1, train("mesh"));
  ASSERT_TRUE(first->wait_for("\nstep "));
  expect_error("for this run alone", 1, train("mesh"));
  expect_error("expected the token of the run", 1, train("other"));
  expect_error("cannot listen on port", 0, train("other"));
  first->send(SIGINT);
  EXPECT_EQ(first->wait().status, 130);
  EXPECT_EQ(second->wait().err, "");
}

// Of a launcher that does not look. It joined, and waited for the others then.
TEST_F(RankProcesses, OneThatIsStoppedBeforeAllHaveComeIsFoundWhenTheyHave) {
  Variable world("WORLD_SIZE", "3");
  Arguments arguments = train("mesh", {"--train.batch=3", "--mesh.hang_seconds=1"});
  auto first = start(0, arguments), second = start(1, arguments);
  ASSERT_TRUE(first->wait_for_error("not there yet: 2; for "));
  second->send(SIGSTOP);
  auto begin = std::chrono::steady_clock::now();
  auto third = start(2, arguments);
  ProgramResult ended = first->wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("error: [ranks] rank 1 hangs: its process does not answer"), std::string::npos) << ended.err;
  EXPECT_EQ(third->wait().status, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "the store's own limit is 300 s";
  second->send(SIGKILL);
  second->wait();
}

TEST_F(RankProcesses, ThatDoNotComeAreNamedWhileTheyAreWaitedForAndAtTheEnd) {
  Variable world("WORLD_SIZE", "4"), seconds("TOKAMAK_JOIN_SECONDS", "8");
  auto first = start(0, train("mesh")), third = start(2, train("mesh"));
  EXPECT_TRUE(first->wait_for_error("not there yet: 1, 3; for "));
  ProgramResult ended = first->wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("error: [rendezvous] expected 4 ranks"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("these have not come: 1, 3"), std::string::npos) << ended.err;
  EXPECT_EQ(third->wait().status, 1);
}

class LocalRanks : public RankProcesses {
 protected:
  LocalRanks() {
    for (const char* name : {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  }
  Variable processes_{"TOKAMAK_RANKS", "processes"};
};

TEST_F(LocalRanks, OneThatEndsBeforeItJoinsIsToldAtOnce) {
  RunningProgram program(folder_.path(), train("mesh", {"--mesh.data=2"}));
  for (pid_t rank : test::ranks_below(1)) ::kill(rank, SIGKILL);
  ProgramResult ended = program.wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_LT(ended.seconds, 20);  // not the minute in which ranks have to come
  EXPECT_NE(ended.err.find("rank 1 "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("was ended by signal 9 (Killed)"), std::string::npos) << ended.err;
}

// Else they try for minutes to reach it.
TEST_F(LocalRanks, EndWithALeaderThatIsKilledBeforeTheyJoin) {
  RunningProgram program(folder_.path(), train("mesh", {"--mesh.data=4"}));
  std::vector<pid_t> ranks = test::ranks_below(3);
  program.send(SIGKILL);
  for (pid_t rank : ranks) EXPECT_TRUE(test::within(20, [&] { return !test::lives(rank); })) << ::kill(rank, SIGKILL);
}

// The most that was resident at a time.
int64_t peak_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  int64_t kib = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) kib = std::atoll(line.c_str() + 6);
  return kib * 1024;
}

// 64 of them ended a machine of 24 GiB when each measured it for itself. Rank 0 does so for all.
TEST_F(LocalRanks, TakeLittleMemoryBesideTheLeader) {
  constexpr int kRanks = 16;
  constexpr int64_t kMiB = 1 << 20, kMost = 96 * kMiB, kOfLeader = 1024 * kMiB;
  if (available_memory() < kRanks * kMost + kOfLeader) GTEST_SKIP() << "this machine has too little memory";
  RunningProgram program(folder_.path(), train("mesh", {"--mesh.data=16", "--train.batch=16", "--device=cpu"}));
  ASSERT_TRUE(program.wait_for("\nstep "));
  for (pid_t rank : test::ranks_below(kRanks - 1)) {
    EXPECT_GT(peak_bytes(rank), 0);
    EXPECT_LT(peak_bytes(rank), kMost) << peak_bytes(rank) / kMiB << " MiB";
  }
  program.send(SIGINT);
  ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_LT(stopped.peak_bytes, kOfLeader);
}

// A step that takes a minute.
TEST_F(RankProcesses, EndWithTheLeaderInTheMiddleOfAStep) {
  Arguments arguments = train("mesh", {"--train.total_batch=8388608", "--train.eval_every=0"});
  auto first = start(0, arguments), second = start(1, arguments);
  ASSERT_TRUE(first->wait_for("mesh: data 2"));
  std::this_thread::sleep_for(std::chrono::seconds(5));
  auto begin = std::chrono::steady_clock::now();
  first->send(SIGKILL);
  ProgramResult ended = second->wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("rank 1: error: rank 0 on "), std::string::npos) << ended.err;
}

TEST_F(RankProcesses, EndWithTheirLauncher) {
  auto launcher = below_shell({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"},
                              "WORLD_SIZE= OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2");
  ASSERT_TRUE(launcher->wait_for("\nstep "));
  std::vector<pid_t> ranks = test::ranks_below(2);
  launcher->send(SIGKILL);
  for (pid_t rank : ranks) EXPECT_TRUE(test::within(20, [&] { return !test::lives(rank); })) << ::kill(rank, SIGKILL);
  ProgramResult ended = launcher->wait();
  // Of the rank that sees it first: it may stop both before the other one looks.
  EXPECT_NE(ended.err.find("mpirun (process "), std::string::npos) << ended.err;
  EXPECT_NE(ended.out.find("stopped after step"), std::string::npos) << ended.out;
}

TEST_F(RankProcesses, MayOutliveAShell) {
  auto shell = below_shell({"RANK", "LOCAL_RANK"}, "");
  ASSERT_TRUE(shell->wait_for("\nstep "));
  std::vector<pid_t> ranks = test::ranks_below(2);
  shell->send(SIGKILL);
  std::this_thread::sleep_for(std::chrono::seconds(4));
  for (pid_t rank : ranks) EXPECT_TRUE(test::lives(rank));
  for (pid_t rank : ranks) ::kill(rank, SIGTERM);
  for (pid_t rank : ranks) EXPECT_TRUE(test::within(20, [&] { return !test::lives(rank); })) << ::kill(rank, SIGKILL);
}

}  // namespace
}  // namespace tokamak
