// Runs on several machines, which are processes here: each has an agent that starts its ranks.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <memory>

#include "base/file.h"
#include "checkpoint/event_log.h"
#include "tests/support/child_programs.h"
#include "tests/support/free_port.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

using Arguments = std::vector<std::string>;
using Kind = RunEvent::Kind;

class Agents : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  Arguments train(const std::string& out, int steps, Arguments more = {}) const {
    more.insert(more.begin(),
                {"--data.path=data", "--train.out=" + out, "--train.batch=4", "--threads=1", "--mesh.slots=4",
                 "--train.checkpoint_every=50", "--mesh.hang_seconds=1", "--train.steps=" + std::to_string(steps)});
    return test::tiny_arguments("train", more);
  }
  // The agent of a machine, and what it has started.
  std::unique_ptr<RunningProgram> start(int number, int steps, const Arguments& more = {}, int machines = 2) const {
    Arguments own = {"--agents.machines=" + std::to_string(machines), "--agents.number=" + std::to_string(number),
                     "--agents.address=127.0.0.1:" + std::to_string(port_), "--agents.wait_seconds=2", "--restarts=5"};
    own.insert(own.end(), more.begin(), more.end());
    return std::make_unique<RunningProgram>(folder_.path(), train("run", steps, own));
  }
  void wait_for_step(int64_t step) const {
    ASSERT_TRUE(test::within(60, [&] { return last_step() > step; })) << last_step();
  }
  int64_t last_step() const {
    std::ifstream file(folder_.path() / "run/metrics.jsonl");
    int64_t step = 0;
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("{\"step\":")) step = std::atoll(line.c_str() + 8);
    return step;
  }
  std::vector<size_t> ranks_of_starts() const {
    std::vector<size_t> ranks;
    for (const RunEvent& event : read_events(folder_.path() / "run"))
      if (event.kind == Kind::kStart) ranks.push_back(event.ranks.size());
    return ranks;
  }
  bool comes_to_starts(size_t starts) const {
    return test::within(60, [&] { return ranks_of_starts().size() >= starts; });
  }
  void expect_bits_of_one_process(const std::string& step, int steps) const {
    ASSERT_EQ(run_program(folder_.path(), train("straight", steps)).status, 0);
    for (const char* file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_TRUE(read_file(folder_.path() / "run/checkpoints" / step / file, kLargeFile) ==
                  read_file(folder_.path() / "straight/checkpoints" / step / file, kLargeFile))
          << file;
  }
  // Of the program that was started as the n-th of those that live.
  static pid_t rank_below(size_t program) {
    return test::children_of(std::to_string(test::children_of("self").at(program))).at(0);
  }

  TemporaryFolder folder_;
  int port_ = test::free_port();
};

TEST_F(Agents, ARankThatIsKilledStartsTheRunAgainOnAllMachines) {
  auto first = start(0, 600, {"--agents.ranks=2"}), second = start(1, 600, {"--agents.ranks=2"});
  wait_for_step(60);
  ::kill(rank_below(1), SIGKILL);
  ASSERT_TRUE(comes_to_starts(2));
  ProgramResult ended = first->wait(), other = second->wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_NE(ended.err.find("starting again, from the newest good checkpoint, on 2 of 2 machines, 4 ranks: machine 1 ("),
            std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("was ended by signal 9 (Killed)"), std::string::npos) << ended.err;
  EXPECT_EQ(ranks_of_starts(), (std::vector<size_t>{4, 4}));
  expect_bits_of_one_process("step_00000600", 600);
}

TEST_F(Agents, AMachineThatIsLostIsLeftOutAndComesAgain) {
  auto first = start(0, 3000), second = start(1, 3000);
  wait_for_step(60);
  second->send(SIGKILL);
  second->wait();
  ASSERT_TRUE(first->wait_for_error("machine 1 did not come back in 2 s (agents.wait_seconds): it is left out"));
  ASSERT_TRUE(comes_to_starts(2));
  second = start(1, 3000);  // waits until the run starts again
  wait_for_step(last_step() + 100);
  ::kill(rank_below(0), SIGKILL);
  ProgramResult ended = first->wait(), other = second->wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(ranks_of_starts(), (std::vector<size_t>{2, 1, 2}));
  expect_bits_of_one_process("step_00003000", 3000);
}

TEST_F(Agents, AMachineThatFailsTwiceIsLeftOutAndNamed) {
  auto first = start(0, 600), second = start(1, 600);
  wait_for_step(60);
  ::kill(rank_below(1), SIGKILL);
  ASSERT_TRUE(comes_to_starts(2));
  wait_for_step(200);
  ::kill(rank_below(1), SIGSTOP);
  ProgramResult ended = first->wait(), other = second->wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(ended.err.find("machine 1 has failed twice and is left out: "), std::string::npos) << ended.err;
  EXPECT_NE(other.err.find("error: [agents] expected machine 1 ("), std::string::npos) << other.err;
  EXPECT_EQ(ranks_of_starts(), (std::vector<size_t>{2, 2, 1}));
  expect_bits_of_one_process("step_00000600", 600);
}

TEST_F(Agents, WhereTheMeshNeedsAllMachinesTheRunEndsOnAllOfThem) {
  auto first = start(0, 100000, {"--mesh.data=2"}), second = start(1, 100000, {"--mesh.data=2"});
  wait_for_step(60);
  second->send(SIGKILL);
  ProgramResult ended = first->wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("error: [mesh] expected pipe x data x context x tensor to be the 1 ranks of this run"),
            std::string::npos)
      << ended.err;
}

TEST_F(Agents, ARequestToStopAtOneStopsAll) {
  auto first = start(0, 100000), second = start(1, 100000);
  wait_for_step(20);
  second->send(SIGTERM);
  ProgramResult ended = first->wait(), other = second->wait();
  EXPECT_EQ(ended.status, other.status);
  EXPECT_NE(ended.out.find("stopped after step "), std::string::npos) << ended.out;
  EXPECT_EQ(ranks_of_starts(), (std::vector<size_t>{2}));
}

TEST_F(Agents, NoRankOutlivesItsAgentAndAnotherEndsWithoutTheFirst) {
  auto first = start(0, 100000), second = start(1, 100000);
  wait_for_step(20);
  pid_t rank = rank_below(0);
  first->send(SIGKILL);
  first->wait();
  EXPECT_TRUE(test::within(20, [&] { return !test::lives(rank); }));
  ProgramResult other = second->wait();
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("cannot reach rank 0 on port"), std::string::npos) << other.err;
}

TEST_F(Agents, AMachineThatNeverComesIsNamed) {
  Variable soon("TOKAMAK_JOIN_SECONDS", "1");
  ProgramResult ended = start(0, 10)->wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("error: [agents] expected 2 machines to come within 1 s, got none with --agents.number=1"),
            std::string::npos)
      << ended.err;
}

// Ranks that have shares, so that none can save alone, and no checkpoint before the end.
class AgentsWithMemory : public Agents {
 protected:
  static Arguments kept(const std::string& machine, const Arguments& more = {}) {
    Arguments all = {"--mesh.zero=2", "--train.checkpoint_every=100000", "--memory_every=20",
                     "--memory_folder=" + machine};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::unique_ptr<RunningProgram> start_kept(int number, int steps, int machines, const Arguments& more = {}) const {
    std::string memory = "memory" + std::to_string(number);
    std::filesystem::create_directory(folder_ / memory);
    return start(number, steps, kept(memory, more), machines);
  }
  // With all its processes and its memory.
  void lose(RunningProgram& agent, int number, pid_t rank) const {
    agent.send(SIGSTOP);
    ::kill(rank, SIGKILL);
    agent.send(SIGKILL);
    agent.wait();
    std::filesystem::remove_all(folder_ / ("memory" + std::to_string(number)));
  }
  static int64_t resumed_step(const ProgramResult& ended) {
    constexpr std::string_view kText = "resuming after step ";
    size_t at = ended.out.find(kText);
    return at == std::string::npos ? -1 : std::atoll(ended.out.c_str() + at + kText.size());
  }
};

TEST_F(AgentsWithMemory, ARunGoesOnFromTheMemoryOfTheMachineThatIsLeft) {
  auto first = start_kept(0, 2000, 2), second = start_kept(1, 2000, 2);
  wait_for_step(100);
  lose(*second, 1, rank_below(1));
  ASSERT_TRUE(comes_to_starts(2));
  ProgramResult ended = first->wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
  // How many states back depends on how busy the machine is; a checkpoint there is none.
  EXPECT_GE(resumed_step(ended), 20) << ended.out;
  EXPECT_NE(ended.out.find(" from memory0/tokamak-states-"), std::string::npos) << ended.out;
  EXPECT_EQ(ranks_of_starts(), (std::vector<size_t>{2, 1}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "memory0"));
  expect_bits_of_one_process("step_00002000", 2000);
}

TEST_F(AgentsWithMemory, TheRestPutTheirPartsTogetherAndOneThatComesAgainGetsAll) {
  std::vector<std::unique_ptr<RunningProgram>> agents;
  for (int number = 0; number < 4; ++number) agents.push_back(start_kept(number, 1600, 4));
  wait_for_step(60);
  lose(*agents[1], 1, rank_below(1));
  ASSERT_TRUE(comes_to_starts(2));  // on two of the three that are left
  agents[1] = start_kept(1, 1600, 4);
  wait_for_step(last_step() + 60);
  ::kill(rank_below(0), SIGKILL);
  for (size_t number : {1, 2, 3}) EXPECT_EQ(agents[number]->wait().status, 0);
  ProgramResult ended = agents[0]->wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_GE(resumed_step(ended), 20) << ended.out;
  EXPECT_EQ(ranks_of_starts(), (std::vector<size_t>{4, 2, 4}));
  expect_bits_of_one_process("step_00001600", 1600);
}

// Of three that are left two train. What the one that is lost had is on the last, what the second has on no other: so
// the first waits.
TEST_F(AgentsWithMemory, AMachineThatWaitsTakesNothingAlong) {
  std::vector<std::unique_ptr<RunningProgram>> agents;
  for (int number = 0; number < 4; ++number) agents.push_back(start_kept(number, 600, 4));
  wait_for_step(60);
  lose(*agents[2], 2, rank_below(2));
  ProgramResult waited = agents[0]->wait(), ended = agents[1]->wait();
  EXPECT_EQ(waited.status, 0) << waited.err;
  EXPECT_NE(waited.err.find("machine 0 ("), std::string::npos) << waited.err;
  EXPECT_EQ(agents[3]->wait().status, 0);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_GE(resumed_step(ended), 20) << ended.out;
  EXPECT_EQ(ranks_of_starts(), (std::vector<size_t>{4, 2}));
  expect_bits_of_one_process("step_00000600", 600);
}

TEST_F(AgentsWithMemory, WhereTwoNeighboursAreLostTheRunGoesOnFromTheCheckpoint) {
  std::vector<std::unique_ptr<RunningProgram>> agents;
  for (int number = 0; number < 4; ++number)
    agents.push_back(start_kept(number, 800, 4, {"--train.checkpoint_every=300"}));
  wait_for_step(420);  // memory has long been ahead of the checkpoint, on a busy machine, too
  pid_t of_second = rank_below(1), of_third = rank_below(2);
  agents[2]->send(SIGSTOP);
  ::kill(of_third, SIGKILL);
  lose(*agents[1], 1, of_second);
  lose(*agents[2], 2, of_third);
  ProgramResult ended = agents[0]->wait();
  EXPECT_EQ(agents[3]->wait().status, 0);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("cannot be had from memory: what rank 1 had is on none of the machines that are left"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find(" from run/checkpoints/step_"), std::string::npos) << ended.out;
  EXPECT_EQ(resumed_step(ended) % 300, 0) << ended.out;
  EXPECT_EQ(ranks_of_starts(), (std::vector<size_t>{4, 2}));
  expect_bits_of_one_process("step_00000800", 800);
}

TEST_F(AgentsWithMemory, MachinesThatAreAskedForDifferentStatesAreNamed) {
  auto first = start_kept(0, 100, 2), second = start_kept(1, 100, 2, {"--memory_every=30"});
  ProgramResult ended = first->wait();
  second->wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("--memory_every"), std::string::npos) << ended.err;
}

TEST_F(Agents, AddressesAndNumbersAreChecked) {
  auto error = [&](const Arguments& more) { return run_program(folder_.path(), train("run", 10, more)).err; };
  EXPECT_NE(error({"--agents.machines=2"}).find("error: [agents.address] expected the first machine as host:port"),
            std::string::npos);
  EXPECT_NE(error({"--agents.machines=2", "--agents.number=2", "--agents.address=a:1"})
                .find("error: [agents.number] expected a number from 0 to 1 for 2 machines, got 2"),
            std::string::npos);
}

}  // namespace
}  // namespace tokamak
