// One rank of several fails as a GPU, a link or memory does: all end with one message, which says where and in what.
#include <gtest/gtest.h>

#include <csignal>
#include <regex>

#include "base/system.h"
#include "checkpoint/event_log.h"
#include "tests/support/child_programs.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

class RankFailure : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  static std::vector<std::string> train(std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"--data.path=data", "--threads=1", "--train.steps=1000000", "--mesh.data=2", "--mesh.hang_seconds=3"});
    return test::tiny_arguments("train", more);
  }
  // "RANK KIND KERNELS", as tests/e2e/faulty/backend.cpp has it.
  ProgramResult run_with(const std::string& fault, const std::vector<std::string>& more = {}) const {
    Variable asked("TOKAMAK_FAULT", fault);
    std::string in_place = "shift; exec " TOKAMAK_FAULTY_PROGRAM " \"$@\"";
    RunningProgram program(folder_.path(), train(more), "", {}, {"/bin/sh", "-c", in_place, "sh"});
    ProgramResult ended = program.wait();
    EXPECT_TRUE(test::within(20, [] { return test::children_of("self").empty(); }));
    return ended;
  }
  static void expect_one_message(const ProgramResult& ended, const std::string& pattern) {
    EXPECT_EQ(ended.status, 1) << ended.err;
    EXPECT_TRUE(std::regex_search(ended.err, std::regex(pattern))) << ended.err;
    size_t first = ended.err.find("error: ");
    EXPECT_EQ(ended.err.find("error: ", first + 1), std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find("bug in tokamak"), std::string::npos) << ended.err;
  }

  TemporaryFolder folder_;
  Variable processes_{"TOKAMAK_RANKS", "processes"};
  std::string cpu_ = " on " + host_name() + " \\(CPU\\)";
};

TEST_F(RankFailure, AKernelsErrorNamesRankDeviceStepAndNode) {
  for (const char* rank : {"0", "1"})
    expect_one_message(run_with(rank + std::string(" illegal 3000")),
                       std::string("error: rank ") + rank + cpu_ +
                           " failed in step [1-9][0-9]*: \\[cuda\\] cudaStreamSynchronize failed: an illegal memory "
                           "access was encountered \\(cudaErrorIllegalAddress\\) \\(in .*node [0-9]+ of ");
}

TEST_F(RankFailure, ADeviceThatIsLostIsNamedOnce) {
  for (const char* mesh : {"--mesh.zero=3", "--mesh.data=1 --mesh.tensor=2", "--mesh.data=1 --mesh.pipe=2"}) {
    std::istringstream options(mesh);
    std::vector<std::string> more;
    for (std::string option; options >> option;) more.push_back(option);
    expect_one_message(run_with("1 lost 3000", more),
                       "error: rank 1" + cpu_ + " failed in step [1-9][0-9]*: .*the GPU has fallen off the bus");
  }
}

TEST_F(RankFailure, ALinkThatBreaksNamesBothEndsTheCallAndTheStep) {
  expect_one_message(run_with("1 link 3000"), "error: \\[.*\\] rank [01]" + cpu_ + " lost its connection to rank [01]" +
                                                  cpu_ + " in .* of step [1-9]");
}

TEST_F(RankFailure, MemoryThatIsNotThereNamesTheNode) {
  expect_one_message(run_with("1 memory 3000"),
                     "error: rank 1" + cpu_ + " failed in step [1-9][0-9]*: std::bad_alloc \\(in .*node [0-9]+ of ");
}

TEST_F(RankFailure, OfAThreadIsTheSame) {
  Variable threads("TOKAMAK_RANKS", "threads");
  expect_one_message(run_with("0 illegal 3000"),
                     "error: rank [01] on " + host_name() + " \\(a thread on the CPU\\) failed in step [1-9][0-9]*: ");
}

TEST_F(RankFailure, ARankThatIsKilledHasItsDeviceAndTheStepThatOthersWereIn) {
  RunningProgram program(folder_.path(), train());
  ASSERT_TRUE(program.wait_for(" 5/1000000"));
  ::kill(test::ranks_below(1)[0], SIGKILL);
  expect_one_message(
      program.wait(),
      "error: rank 1" + cpu_ + " is gone: it was ended by signal 9 \\(Killed\\); rank 0" + cpu_ + " was in step [1-9]");
}

// The fault comes at every start.
TEST_F(RankFailure, StartsTheRunAgainUntilItDiesAtTheSameStep) {
  ProgramResult ended = run_with("1 illegal 3000", {"--restarts=5", "--train.checkpoint_every=100000"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("starting again, from the newest good checkpoint: rank 1 on "), std::string::npos)
      << ended.err;
}

}  // namespace
}  // namespace tokamak
