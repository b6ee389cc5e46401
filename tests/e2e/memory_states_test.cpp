// A run that loses a process goes on from the memory of its machine.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "tests/support/child_programs.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class MemoryOfMachine : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    fs::create_directory(folder_ / "memory");
  }

  static std::vector<std::string> train(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"--data.path=data",  "--train.out=" + out, "--threads=1",  "--train.total_batch=64",
                                    "--train.steps=800", "--mesh.data=2",      "--mesh.zero=2"};
    all.insert(all.end(), more.begin(), more.end());
    return test::tiny_arguments("train", all);
  }
  static std::vector<std::string> kept() { return {"--restarts=3", "--memory_every=20", "--memory_folder=memory"}; }
  int64_t last_step() const {
    std::ifstream file(folder_.path() / "run/metrics.jsonl");
    int64_t step = 0;
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("{\"step\":")) step = std::atoll(line.c_str() + 8);
    return step;
  }
  bool memory_is_empty() const { return fs::is_empty(folder_ / "memory"); }

  TemporaryFolder folder_;
  Variable processes_{"TOKAMAK_RANKS", "processes"};
};

TEST_F(MemoryOfMachine, HasTheStateOfARunWhoseRanksHaveShares) {
  ASSERT_EQ(run_program(folder_.path(), train("straight")).status, 0);
  RunningProgram program(folder_.path(), train("run", kept()));
  ASSERT_TRUE(test::within(60, [&] { return last_step() > 100; }));
  pid_t leader = test::ranks_below(1)[0];
  ::kill(test::children_of(std::to_string(leader)).at(0), SIGKILL);
  ASSERT_TRUE(program.wait_for("resuming after step "));
  ProgramResult ended = program.wait();
  ASSERT_EQ(ended.status, 0) << ended.err;
  int64_t resumed = std::atoll(ended.out.c_str() + ended.out.find("resuming after step ") + 20);
  EXPECT_GE(resumed, 20) << ended.out;  // how many states back depends on how busy the machine is
  EXPECT_NE(ended.out.find(" from memory/tokamak-states-"), std::string::npos) << ended.out;
  EXPECT_TRUE(memory_is_empty());
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_TRUE(read_file(folder_.path() / "run/checkpoints/step_00000800" / file, kLargeFile) ==
                read_file(folder_.path() / "straight/checkpoints/step_00000800" / file, kLargeFile))
        << file;
}

TEST_F(MemoryOfMachine, IsGivenBackThoughAllProcessesWereKilled) {
  {
    RunningProgram program(folder_.path(), train("run", kept()));
    ASSERT_TRUE(test::within(60, [&] { return last_step() > 30; }));
    pid_t leader = test::ranks_below(1)[0];
    std::vector<pid_t> all = test::children_of(std::to_string(leader));
    all.push_back(leader);
    program.send(SIGKILL);
    for (pid_t process : all) ::kill(process, SIGKILL);
    ASSERT_TRUE(test::within(20, [&] { return !test::lives(leader); }));
  }
  EXPECT_FALSE(memory_is_empty());
  ASSERT_EQ(run_program(folder_.path(), train("other", kept())).status, 0);
  EXPECT_TRUE(memory_is_empty());
}

TEST_F(MemoryOfMachine, IsGivenBackByTheRunWhoseSupervisorIsKilled) {
  RunningProgram program(folder_.path(), train("run", kept()));
  ASSERT_TRUE(test::within(60, [&] { return last_step() > 30; }));
  program.send(SIGKILL);
  EXPECT_TRUE(test::within(20, [&] { return memory_is_empty(); }));
}

TEST_F(MemoryOfMachine, IsUsedByRunsThatStartAgain) {
  ProgramResult ended = run_program(folder_.path(), train("run", {"--memory_every=20"}));
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("[memory_every] expected --restarts with it"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace tokamak
