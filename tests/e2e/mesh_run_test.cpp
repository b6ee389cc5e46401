// `tokamak train` on meshes of ranks that it starts itself, and of ranks that a launcher starts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "base/file.h"
#include "tests/support/free_port.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

using Arguments = std::vector<std::string>;

class MeshRun : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  static Arguments train(const std::string& out, Arguments more) {
    more.insert(more.begin(), {"--data.path=data", "--train.out=" + out, "--train.batch=4", "--threads=1"});
    return test::tiny_arguments("train", more);
  }
  ProgramResult run(const std::string& out, Arguments more = {}) {
    return run_program(folder_.path(), train(out, std::move(more)));
  }

  // Two ranks as torchrun would start them.
  void start(const std::function<Arguments(int rank)>& more) {
    Variable world("WORLD_SIZE", "2"), address("MASTER_ADDR", "127.0.0.1"), token("TOKAMAK_TOKEN", "test");
    Variable port("MASTER_PORT", std::to_string(test::free_port()));
    for (int rank = 0; rank < 2; ++rank) {
      Variable own("RANK", std::to_string(rank)), local("LOCAL_RANK", std::to_string(rank));
      ranks_[rank].emplace(folder_.path(), train("mesh", more(rank)));
    }
  }

  std::vector<double> losses(const std::string& out) const {
    std::vector<double> losses;
    std::ifstream file(folder_ / out / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) losses.push_back(nlohmann::json::parse(line).at("loss"));
    return losses;
  }
  // As they are written.
  std::vector<std::string> validation_losses(const std::string& out) const {
    std::vector<std::string> losses;
    std::ifstream file(folder_ / out / "metrics.jsonl");
    for (std::string line; std::getline(file, line);)
      if (auto metrics = nlohmann::json::parse(line); metrics.contains("val_loss"))
        losses.push_back(metrics["val_loss"].dump());
    return losses;
  }
  void expect_same_losses(const std::string& a, const std::string& b) const {
    std::vector<double> x = losses(a), y = losses(b);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-4) << "step " << i + 1;
  }

  TemporaryFolder folder_;
  std::optional<RunningProgram> ranks_[2];
};

TEST_F(MeshRun, AllRanksEndEarlyAndKeepTheBest) {
  ProgramResult mesh = run("mesh", {"--mesh.data=2", "--mesh.zero=2", "--train.eval_every=2", "--train.keep_best",
                                    "--train.patience=2", "--train.min_improvement=100"});
  EXPECT_EQ(mesh.status, 0) << mesh.err;
  EXPECT_NE(mesh.out.find("after step 6 ended early"), std::string::npos) << mesh.out;
  EXPECT_EQ(losses("mesh").size(), 6u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "mesh/checkpoints/best/model.safetensors"));
  ProgramResult again = run("mesh", {"--mesh.data=2", "--mesh.zero=2", "--train.eval_every=2", "--train.keep_best",
                                     "--train.patience=2", "--train.min_improvement=100"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(losses("mesh").size(), 6u) << "it stays ended";
  ProgramResult evaluated = run_program(folder_.path(), {"eval", "mesh/checkpoints/best", "--threads=1"});
  EXPECT_EQ(evaluated.status, 0) << evaluated.err;
}

TEST_F(MeshRun, OnThreadsIsTheRunOfOneRank) {
  EXPECT_EQ(run("one").status, 0);
  ProgramResult mesh =
      run("mesh", {"--mesh.data=2", "--mesh.zero=3", "--train.eval_every=10", "--train.sample_every=10"});
  EXPECT_EQ(mesh.status, 0) << mesh.err;
  EXPECT_NE(mesh.out.find("mesh: data 2"), std::string::npos) << mesh.out;
  EXPECT_NE(mesh.out.find("--- sample after step 20 ---"), std::string::npos) << mesh.out;
  expect_same_losses("one", "mesh");
}

// Not those of a rank beside everyone's tokens, and not what is computed again.
TEST_F(MeshRun, CountsTheModelsFlopsOfAllRanks) {
  auto flops_per_token = [&](const std::string& out, Arguments more) {
    more.emplace_back("--train.steps=2");
    ProgramResult result = run(out, more);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out.find("MFU is the share of 2 x ") != std::string::npos, out == "mesh") << result.out;
    std::ifstream file(folder_ / out / "metrics.jsonl");
    std::string line;
    std::getline(file, line);
    auto metrics = nlohmann::json::parse(line);
    return metrics.at("model_gflops").get<double>() * 1e9 / metrics.at("tokens_per_second").get<double>();
  };
  double one = flops_per_token("one", {});
  EXPECT_NEAR(flops_per_token("again", {"--compile.memory_budget_gib=1e-6"}), one, 1e-6 * one);
  EXPECT_NEAR(flops_per_token("mesh", {"--mesh.data=2"}), one, 1e-6 * one);
}

TEST_F(MeshRun, OnProcessesThatItStartsItSpeaksWithOneVoice) {
  EXPECT_EQ(run("one").status, 0);
  Variable processes("TOKAMAK_RANKS", "processes");
  ProgramResult mesh = run("mesh", {"--mesh.data=2"});
  EXPECT_EQ(mesh.status, 0) << mesh.err;
  EXPECT_EQ(mesh.err, "");
  EXPECT_EQ(mesh.out.find("mesh: data 2"), mesh.out.rfind("mesh: data 2"));
  expect_same_losses("one", "mesh");
}

// Else each waits for the others' threads.
TEST_F(MeshRun, ProcessesOfAMachineShareItsCores) {
  ::unsetenv("OMP_NUM_THREADS");
  auto device_of = [&](const std::string& out) {
    ProgramResult result = run(out, {"--mesh.data=2", "--threads=0", "--train.steps=1"});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out.substr(0, result.out.find(" thread"));  // "AMD EPYC: 2"
  };
  std::string threads = device_of("threads");
  Variable processes("TOKAMAK_RANKS", "processes");
  EXPECT_EQ(device_of("processes"), threads);
}

TEST_F(MeshRun, IsStartedByMpirun) {
  if (std::system("mpirun --version 2>&1 | grep -q 'Open MPI'") != 0) GTEST_SKIP() << "no Open MPI here (openmpi-bin)";
  EXPECT_EQ(run("one").status, 0);
  Variable root("OMPI_ALLOW_RUN_AS_ROOT", "1"), really("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  RunningProgram program(folder_.path(), train("mesh", {}), "", {}, {"mpirun", "--oversubscribe", "-n", "2"});
  ProgramResult mesh = program.wait();
  EXPECT_EQ(mesh.status, 0) << mesh.out << mesh.err;
  EXPECT_EQ(mesh.out.find("mesh: data 2"), mesh.out.rfind("mesh: data 2")) << mesh.out;
  expect_same_losses("one", "mesh");
}

TEST_F(MeshRun, GoesOnWithAnotherMesh) {
  EXPECT_EQ(run("one").status, 0);
  EXPECT_EQ(run("mesh", {"--mesh.data=4", "--train.steps=20", "--train.checkpoint_every=7", "--mesh.zero=1"}).status,
            0);
  std::filesystem::remove_all(folder_ / "mesh/checkpoints/step_00000020");
  ProgramResult on = run("mesh", {"--mesh.tensor=2", "--mesh.data=2", "--mesh.zero=2"});
  EXPECT_EQ(on.status, 0) << on.err;
  EXPECT_NE(on.out.find("resuming after step 14"), std::string::npos) << on.out;
  expect_same_losses("one", "mesh");
}

// Validation, samples, checkpoints and all.
TEST_F(MeshRun, OnAPipelineIsTheRunOfOneRank) {
  Arguments often = {"--train.total_batch=256", "--train.checkpoint_every=7", "--train.eval_every=10",
                     "--train.sample_every=10", "--model.layers=4"};
  auto with = [&](Arguments more) {
    more.insert(more.begin(), often.begin(), often.end());
    return more;
  };
  EXPECT_EQ(run("one", with({})).status, 0);
  ProgramResult pipe = run("pipe", with({"--mesh.pipe=4", "--mesh.schedule=zero_bubble"}));
  EXPECT_EQ(pipe.status, 0) << pipe.err;
  EXPECT_NE(pipe.out.find("--- sample after step 20 ---"), std::string::npos) << pipe.out;
  expect_same_losses("one", "pipe");
  std::filesystem::remove_all(folder_ / "pipe/checkpoints/step_00000020");
  Variable processes("TOKAMAK_RANKS", "processes");
  ProgramResult on = run("pipe", with({"--mesh.pipe=2", "--mesh.data=2", "--mesh.zero=1"}));
  EXPECT_EQ(on.status, 0) << on.err;
  EXPECT_NE(on.out.find("resuming after step 14"), std::string::npos) << on.out;
  expect_same_losses("one", "pipe");
}

// Parameters and states byte for byte: two ranks, then one, are four ranks that share all of it, and one alone.
TEST_F(MeshRun, HasTheSameBitsOnAnyNumberOfRanks) {
  Arguments common = {"--train.eval_every=4", "--train.eval_batches=2"};
  auto with = [&](Arguments more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  EXPECT_EQ(run("one", with({"--mesh.slots=4"})).status, 0);
  EXPECT_EQ(run("four", with({"--mesh.data=4", "--mesh.zero=3"})).status, 0);
  EXPECT_EQ(run("turns", with({"--mesh.data=2", "--mesh.slots=4", "--train.checkpoint_every=7"})).status, 0);
  std::filesystem::remove_all(folder_ / "turns/checkpoints/step_00000020");
  ProgramResult on = run("turns", common);  // the slots are remembered
  EXPECT_NE(on.out.find("resuming after step 14"), std::string::npos) << on.out << on.err;
  EXPECT_NE(on.out.find("changed since step 14: train.checkpoint_every 7 -> 0\n"), std::string::npos) << on.out;
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    auto content = [&](const char* out) { return read_file(folder_ / out / "checkpoints/latest" / file); };
    EXPECT_TRUE(content("one") == content("four")) << file;
    EXPECT_TRUE(content("one") == content("turns")) << file;
  }
  EXPECT_EQ(validation_losses("one").size(), 5u);
  EXPECT_EQ(validation_losses("one"), validation_losses("four"));
  EXPECT_EQ(validation_losses("one"), validation_losses("turns"));
}

// Ranks that have shares of parameters and gather them in bf16: several micro-batches a rank, then one.
TEST_F(MeshRun, HasTheSameBitsInLowPrecisionWithStagesOfZero) {
  Arguments common = {"--compile.precision=bf16", "--mesh.slots=4", "--train.eval_every=4", "--train.eval_batches=2",
                      "--train.sample_every=10"};
  auto part = [&](const std::string& out, Arguments more) {
    more.insert(more.end(), common.begin(), common.end());
    ProgramResult result = run(out, more);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  part("one", {});
  std::string first = part("turns", {"--mesh.data=2", "--mesh.zero=1", "--train.checkpoint_every=7"});
  EXPECT_NE(first.find("--- sample after step 10 ---"), std::string::npos) << first;
  std::filesystem::remove_all(folder_ / "turns/checkpoints/step_00000020");
  std::string on = part("turns", {"--mesh.data=4", "--mesh.zero=2"});
  EXPECT_NE(on.find("resuming after step 14"), std::string::npos) << on;
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    auto content = [&](const char* out) { return read_file(folder_ / out / "checkpoints/latest" / file); };
    EXPECT_TRUE(content("one") == content("turns")) << file;
  }
  EXPECT_EQ(losses("one"), losses("turns"));
  EXPECT_EQ(validation_losses("one"), validation_losses("turns"));
}

// Data ranks, then a pipeline, then other data ranks, byte for byte as one rank alone.
TEST_F(MeshRun, HasTheSameBitsAsAPipelineAndBack) {
  auto part = [&](const std::string& out, Arguments more) {
    for (const char* option : {"--train.checkpoint_every=7", "--train.keep_checkpoints=9", "--train.eval_every=4",
                               "--train.eval_batches=2", "--model.dropout=0.1"})
      more.push_back(option);
    ProgramResult result = run(out, more);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  auto forget = [&](std::initializer_list<const char*> steps) {
    for (const char* step : steps) std::filesystem::remove_all(folder_ / "turns/checkpoints" / step);
  };
  part("one", {"--mesh.slots=4"});
  part("turns", {"--mesh.data=2", "--mesh.slots=4"});
  forget({"step_00000014", "step_00000020"});
  std::string piped = part("turns", {"--mesh.pipe=2", "--mesh.data=2", "--mesh.schedule=zero_bubble"});
  EXPECT_NE(piped.find("resuming after step 7"), std::string::npos) << piped;
  forget({"step_00000020"});
  std::string back = part("turns", {"--mesh.data=4", "--mesh.zero=3"});
  EXPECT_NE(back.find("resuming after step 14"), std::string::npos) << back;
  EXPECT_EQ((piped + back).find("changed since"), std::string::npos) << piped << back;
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    auto content = [&](const char* out) { return read_file(folder_ / out / "checkpoints/latest" / file); };
    EXPECT_TRUE(content("one") == content("turns")) << file;
  }
  EXPECT_EQ(losses("one"), losses("turns"));
  EXPECT_EQ(validation_losses("one"), validation_losses("turns"));
}

TEST_F(MeshRun, LeavesAModelForOneDevice) {
  EXPECT_EQ(run("mesh", {"--mesh.tensor=2", "--mesh.data=2"}).status, 0);
  ProgramResult evaluated = run_program(folder_.path(), {"eval", "mesh", "--threads=1"});
  EXPECT_EQ(evaluated.status, 0) << evaluated.err;
  ProgramResult divided = run_program(folder_.path(), {"eval", "mesh", "--threads=1", "--mesh.tensor=2"});
  EXPECT_EQ(divided.out, evaluated.out) << divided.err;
  ProgramResult text = run_program(folder_.path(), {"generate", "mesh", "--tokens=5"});
  EXPECT_EQ(text.status, 0) << text.err;
}

TEST_F(MeshRun, SamplesAsOneRankDoes) {
  auto sample = [&](const std::string& out, Arguments more) {
    more.push_back("--train.sample_every=10");
    ProgramResult result = run(out, std::move(more));
    EXPECT_EQ(result.status, 0) << result.err;
    size_t begin = result.out.find("--- sample after step 10 ---");
    return begin == std::string::npos ? "none" : result.out.substr(begin, result.out.find("\n---\n", begin) - begin);
  };
  std::string one = sample("one", {});
  EXPECT_NE(one, "none");
  EXPECT_EQ(sample("tensor", {"--mesh.tensor=2", "--mesh.data=2", "--mesh.zero=1"}), one) << "from the parts";
  EXPECT_EQ(sample("zero", {"--mesh.tensor=2", "--mesh.data=2", "--mesh.zero=3"}), one) << "gathered";
}

TEST_F(MeshRun, GeneratesTheTextOfOneRank) {
  EXPECT_EQ(run("one").status, 0);
  std::ofstream(folder_ / "prompts") << "the first\n\na third one\n";
  auto generate = [&](Arguments more) {
    more.insert(more.begin(), {"generate", "one", "--tokens=60", "--device=cpu", "--threads=1"});
    ProgramResult text = run_program(folder_.path(), more);
    EXPECT_EQ(text.status, 0);
    EXPECT_EQ(text.err, "");
    return text.out;
  };
  EXPECT_EQ(generate({"--temperature=0", "--mesh.tensor=2"}), generate({"--temperature=0"}));
  Variable processes("TOKAMAK_RANKS", "processes");
  EXPECT_EQ(generate({"--prompts=prompts", "--rows=2", "--mesh.tensor=2"}),
            generate({"--prompts=prompts", "--rows=2"}));
}

TEST_F(MeshRun, StopsAllRanksAfterTheSameStep) {
  Variable processes("TOKAMAK_RANKS", "processes");
  RunningProgram program(folder_.path(), train("mesh", {"--mesh.data=2", "--train.steps=100000"}));
  ASSERT_TRUE(program.wait_for("\nstep "));
  program.send(SIGINT);  // to rank 0 alone
  ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.status, 130);
  EXPECT_NE(stopped.out.find("stopped after step"), std::string::npos) << stopped.out;
  EXPECT_NE(stopped.out.find("saved mesh/checkpoints"), std::string::npos) << stopped.out;
}

// As Ctrl-C in a terminal, srun and mpirun send it.
TEST_F(MeshRun, ASignalToAllRanksIsToldOnce) {
  start([](int) { return Arguments{"--train.steps=100000"}; });
  ASSERT_TRUE(ranks_[0]->wait_for("\nstep "));
  for (auto& rank : ranks_) rank->send(SIGINT);
  EXPECT_EQ(ranks_[0]->wait().status, 130);
  EXPECT_EQ(ranks_[0]->wait().err, "finishing this step; again to quit now\n");
  EXPECT_EQ(ranks_[1]->wait().err, "");
}

TEST_F(MeshRun, ARankThatDiesEndsTheRunWithItsName) {
  start([](int) { return Arguments{"--train.steps=100000"}; });
  ASSERT_TRUE(ranks_[0]->wait_for("\nstep "));
  ranks_[1]->send(SIGKILL);
  ProgramResult ended = ranks_[0]->wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("rank 1"), std::string::npos) << ended.err;
}

// Between checkpoints: what a data rank that lives has in memory is saved, and the run goes on from there.
TEST_F(MeshRun, WhatWasComputedIsSavedWhenARankDies) {
  constexpr const char* kSteps = "--train.steps=1000";
  EXPECT_EQ(run("one", {kSteps, "--mesh.data=2"}).status, 0);
  for (int killed : {1, 0}) {
    std::filesystem::remove_all(folder_ / "mesh");
    start([&](int) { return Arguments{kSteps, "--train.log_every=1"}; });
    ASSERT_TRUE(ranks_[0]->wait_for(" 20/1000"));
    ranks_[killed]->send(SIGKILL);
    ProgramResult ended = ranks_[1 - killed]->wait();
    EXPECT_EQ(ended.status, 1);
    std::string told = ended.out + ended.err;
    size_t at = told.find("saved the state after step ");
    ASSERT_NE(at, std::string::npos) << told;
    int step = std::atoi(told.c_str() + at + 27);
    EXPECT_GE(step, 19);
    EXPECT_GE(losses("mesh").size(), size_t(step)) << "steps without a line";
    ProgramResult on = run("mesh", {kSteps, "--mesh.data=2"});
    EXPECT_EQ(on.status, 0) << on.err;
    EXPECT_NE(on.out.find("resuming after step " + std::to_string(step) + " from"), std::string::npos) << on.out;
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      auto content = [&](const char* out) { return read_file(folder_ / out / "checkpoints/latest" / file); };
      EXPECT_TRUE(content("one") == content("mesh")) << file << ", rank " << killed << " was killed";
    }
    EXPECT_EQ(losses("one"), losses("mesh"));
  }
}

TEST_F(MeshRun, ARankThatWaitsForAnotherSaysSoAndCanBeStopped) {
  Variable world("WORLD_SIZE", "2"), address("MASTER_ADDR", "127.0.0.1"), rank("RANK", "0"), local("LOCAL_RANK", "0");
  std::string number = std::to_string(test::free_port());
  Variable port("MASTER_PORT", number);
  RunningProgram program(folder_.path(), train("mesh", {}));
  ASSERT_TRUE(program.wait_for_error("waiting until all 2 ranks have come to port " + number));
  program.send(SIGTERM);
  ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.status, 128 + SIGTERM);
}

TEST_F(MeshRun, RefusesRanksThatDiffer) {
  start([](int rank) { return Arguments{"--optimizer.lr=" + std::to_string(0.001 * (rank + 1))}; });
  ProgramResult first = ranks_[0]->wait(), second = ranks_[1]->wait();
  EXPECT_EQ(first.status, 1);
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(first.err.find("expected the same configuration on all ranks"), std::string::npos) << first.err;
  EXPECT_NE(first.err.find("rank 1"), std::string::npos) << first.err;
  EXPECT_NE(first.err.find("lr"), std::string::npos) << first.err;
  EXPECT_EQ(second.err, "");
}

// Before ranks have met each speaks for itself, as what is wrong may be wrong with its machine alone.
TEST_F(MeshRun, ARankThatRefusesToBeginGivesItsNumber) {
  start([](int) { return Arguments{"--mesh.data=3", "--train.batch=3"}; });
  EXPECT_TRUE(ranks_[0]->wait().err.starts_with("error: [mesh] expected")) << ranks_[0]->wait().err;
  EXPECT_TRUE(ranks_[1]->wait().err.starts_with("rank 1: error: [mesh] expected")) << ranks_[1]->wait().err;
}

TEST_F(MeshRun, RefusesAMeshThatDoesNotFit) {
  ProgramResult tensor = run("mesh", {"--mesh.tensor=3"});
  EXPECT_EQ(tensor.status, 1);
  EXPECT_NE(tensor.err.find("1, 2 would fit"), std::string::npos) << tensor.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "mesh"));
}

}  // namespace
}  // namespace tokamak
