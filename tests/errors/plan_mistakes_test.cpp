// What `tokamak plan` refuses, and what it says instead.
#include <gtest/gtest.h>

#include "tests/support/expect_refused.h"
#include "tests/support/quick_file.h"

namespace tokamak {
namespace {

class PlanMistakes : public testing::Test {
 protected:
  ProgramResult plan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plan");
    return run_program(folder_.path(), arguments);
  }

  TemporaryFolder folder_;
};

TEST_F(PlanMistakes, WhatDoesNotFitIsRefusedWithTheNearestThatDoes) {
  expect_refused(
      plan({"--model.preset=gpt3-13b", "--cluster=dgx-a100", "--gpus=1"}),
      {"[plan] expected a layout that fits 79.15 GiB of a GPU", "at least", "the nearest that does:", "on 4 GPUs"});
  expect_refused(plan({"--model.preset=gpt3-13b", "--gpus=4", "--mesh.data=4", "--mesh.zero=0"}),
                 {"the nearest that does:", "on 4 GPUs"});
  expect_refused(plan({"--model.preset=gpt3-6.7b", "--cluster=rtx-4090"}),
                 {"no layout of this cluster does", "the nearest that does:", "--cluster=h200"});
}

TEST_F(PlanMistakes, AnUnknownClusterIsRefusedWithTheKnownOnes) {
  expect_refused(plan({"--cluster=leonard"}), {"[cluster]", "dgx-a100", "did you mean 'leonardo'"});
  expect_refused(plan({"--cluster=missing.toml"}), {"missing.toml"});
  expect_refused(plan({"--cluster="}), {"[cluster]", "a TOML file or here (this machine)"});
}

TEST_F(PlanMistakes, AWrongKeyInAClusterIsNamedWithItsLine) {
  write_file_quickly(folder_.path() / "mine.toml",
                     "name = \"mine\"\nnode_powr = {value = 3000, source = \"a meter\"}\n");
  expect_refused(plan({"--cluster=mine.toml"}), {"[mine.toml:2: node_powr]", "did you mean 'node_power'?"});
}

TEST_F(PlanMistakes, AFigureInAnotherUnitIsRefused) {
  auto with = [&](const std::string& bandwidth, const std::string& latency) {
    write_file_quickly(
        folder_.path() / "mine.toml",
        "name = \"mine\"\nnodes = 1\ngpus_per_node = 4\nnode_power = {value = 3000, source = \"a meter\"}\n"
        "[gpu]\nmodel = \"a100-80gb\"\n[within]\nbandwidth = {value = " +
            bandwidth + ", source = \"x\"}\nlatency = {value = " + latency + ", source = \"x\"}\n");
    return plan({"--model.preset=gpt2-124m", "--cluster=mine.toml", "--exact=0"});
  };
  EXPECT_EQ(with("200e9", "20e-6").status, 0);
  expect_refused(with("200", "20e-6"), {"[mine.toml: within.bandwidth] expected bytes/s", "got 200;", "200e9"});
  expect_refused(with("200e9", "20"), {"[mine.toml: within.latency] expected seconds", "got 20;", "20e-6"});
}

TEST_F(PlanMistakes, ABudgetLeavesModelAndLengthOpen) {
  expect_refused(plan({"--budget=3weeks"}), {"[budget] expected a number with gpuh", "1000gpuh", "got '3weeks'"});
  expect_refused(plan({"--budget=1h", "--model.preset=gpt2-124m"}), {"[budget]", "--model.preset; leave it out"});
  expect_refused(plan({"--budget=1h", "--tokens=1B"}), {"[budget]", "--tokens; leave it out"});
  expect_refused(plan({"--budget=1h", "--html=a.html"}), {"[html] expected a plan to draw, got a budget"});
}

TEST_F(PlanMistakes, AListIsNoPlan) {
  expect_refused(plan({"--clusters", "--json"}), {"[json] expected a plan", "leave it out"});
  expect_refused(plan({"--examples", "--html=page.html"}), {"[html] expected a plan", "leave it out"});
}

TEST_F(PlanMistakes, ThisMachineWithoutAGpuIsNoCluster) {
  ProgramResult result = plan({"--cluster=here", "--model.preset=gpt2-124m", "--gpus=1", "--exact=0"});
  if (result.status == 0) GTEST_SKIP() << "there is a GPU";
  expect_refused(result, {"[cluster] expected a GPU in this machine", "--cluster=here"});
}

TEST_F(PlanMistakes, AModelWithoutAVocabularyIsRefused) {
  expect_refused(plan({"--model.preset=small"}), {"[model.vocab]", "--model.vocab"});
}

TEST_F(PlanMistakes, GpusThatThereAreNot) {
  expect_refused(plan({"--gpus=9"}), {"[gpus] expected 1 to 8", "got 9"});
  expect_refused(plan({"--train.total_batch=1000"}), {"[train.total_batch]"});
  expect_refused(plan({"--gpus=9"}), {"--cluster names another", "more nodes"});
  expect_refused(plan({"--gpus=4", "--mesh.data=3"}),
                 {"[gpus]", "the 3 ranks of mesh.data=3, got 4; 3 or 6 would fit"});
  expect_refused(plan({"--gpus=1024", "--cluster=dgx-h100", "--mesh.pipe=2", "--mesh.tensor=3"}),
                 {"the 6 ranks of mesh.pipe=2 x mesh.tensor=3, got 1024; 1008 or 1032 would fit"});
  expect_refused(plan({"--gpus=4", "--mesh.data=2", "--mesh.pipe=1", "--mesh.context=1", "--mesh.tensor=1"}),
                 {"[plan] expected a layout of 4 GPUs", "ranks of all axes are 4"});
}

TEST_F(PlanMistakes, WhatNoLayoutIsPricedWithIsRefused) {
  expect_refused(plan({"--device=cpu"}), {"[device] expected cuda", "--cluster", "got cpu", "leave it out"});
  expect_refused(plan({"--device=cuda:1"}), {"[device] expected cuda", "got cuda:1"});
  expect_refused(plan({"--compile.precision=fp32"}),
                 {"[compile.precision] expected bf16 or fp8", "got fp32", "leave it out"});
  expect_refused(plan({"--compile.precision=fp8", "--cluster=dgx-a100"}),
                 {"compile.precision=fp8 expected a GPU with FP8", "A100", "--compile.precision=bf16"});
  expect_refused(plan({"--mesh.slots=8"}), {"[mesh.slots] expected 1 (sums in any order)", "got 8"});
  expect_refused(plan({"--compile.memory_budget_gib=9"}),
                 {"[compile.memory_budget_gib] expected none", "got 9", "gpu.memory_bytes"});
}

TEST_F(PlanMistakes, WhatNoLayoutHasIsNamed) {
  expect_refused(plan({"--mesh.schedule=1f1b", "--mesh.interleave=2"}),
                 {"[mesh.interleave] expected 1 with mesh.schedule=1f1b, got 2"});
  expect_refused(plan({"--train.batch=7", "--train.total_batch=7k"}), {"[train.total_batch] expected a multiple of"});
  ProgramResult of_seven = plan({"--gpus=1", "--train.batch=7", "--train.total_batch=14336", "--exact=0"});
  EXPECT_NE(of_seven.out.find("--train.batch=7 --train.total_batch=14336"), std::string::npos) << of_seven.err;
}

TEST_F(PlanMistakes, TokensThatAreNoNumber) {
  expect_refused(plan({"--tokens=10Q"}), {"[--tokens] expected a number of at least 0, got the text \"10Q\""});
  expect_refused(plan({"--tokens=10B", "--train.steps=5"}), {"[tokens]", "--train.steps", "leave one out"});
  expect_refused(plan({"--tokens=10B", "--train.tokens=5"}), {"[tokens]", "--train.tokens", "leave one out"});
  expect_refused(plan({"--train.epochs=2"}),
                 {"[train.epochs] expected --tokens, as plan reads no data", "got epochs (2)"});
  expect_refused(plan({"--tokens=-5"}), {"[--tokens] expected a number of at least 0, got -5"});
  expect_refused(plan({"--tokens=nan"}), {"[--tokens]", "nan"});
  expect_refused(plan({"--tokens=15"}), {"[tokens] expected the", "of a step at least, got 15; 15T"});
}

}  // namespace
}  // namespace tokamak
