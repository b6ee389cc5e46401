// Scratch memory of kernels on the CPU: as planned before a run, and as programs then take it.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "base/parallel.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "exec/program.h"
#include "ladder/rungs.h"
#include "model/gpt.h"
#include "tests/support/resolve_first.h"

namespace tokamak {
namespace {

RunConfig small() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 96, .context = 320, .vocab = 1003};
  config.train.batch = 2;
  return config;
}

// On as many threads as the platform has.
class Scratch : public testing::Test {
 protected:
  void SetUp() override { set_num_threads(platform_.target.units); }
  void TearDown() override { set_num_threads(0); }

  void expect_as_planned(const RunConfig& config, std::string_view what) {
    CompiledStep step = compile_step(config, platform_);
    for (const CompiledGraph& program : step.programs)
      EXPECT_EQ(program.plan.scratch_bytes, taken(program.plan)) << what << ": " << program.name();
  }

  // What the program of the plan allocates.
  static int64_t taken(const Plan& plan) {
    auto backend = cpu::make_backend();
    TensorStore store(*backend);
    return Program(plan, *backend, store).workspace_bytes();
  }

  Platform platform_ = cpu::nominal_platform();
};

TEST_F(Scratch, IsAsPlannedOnEveryRung) {
  RunConfig config = small();
  int64_t most = 0;  // without AVX-512 products in fp32 take none
  for (const Rung& rung : cpu_rungs()) {
    rung.switch_on(config, 0);
    expect_as_planned(config, rung.name);
    most = std::max(most, compile_step(config, platform_).scratch_bytes());
  }
  EXPECT_GT(most, 0);
}

TEST_F(Scratch, IsAsPlannedOfOtherRuns) {
  RunConfig config = small();
  config.compile.precision = Precision::kFp16;
  expect_as_planned(config, "fp16, by reference kernels");
  config.compile.precision = Precision::kFp32;
  config.model.dropout = 0.1;
  config.data.mask_documents = true;
  expect_as_planned(config, "dropout and documents");
  config.train.total_batch = 4 * config.train.batch * config.model.context;
  expect_as_planned(config, "accumulation");
}

TEST_F(Scratch, IsAsPlannedOfEvaluation) {
  RunConfig config = small();
  Plan plan = compile_inference(eval_graph(config.model, 2, config.model.context, false),
                                resolve(config, platform_.target), platform_)
                  .plan;
  EXPECT_EQ(plan.scratch_bytes, taken(plan));
}

TEST_F(Scratch, IsPartOfTheTotalOfBothPrograms) {
  RunConfig config = small();
  config.train.total_batch = 4 * config.train.batch * config.model.context;
  Platform without(platform_.target);
  CompiledStep step = compile_step(config, platform_), bare = compile_step(config, without);
  EXPECT_EQ(bare.scratch_bytes(), 0);
  EXPECT_EQ(step.total_bytes(), bare.total_bytes() + step.scratch_bytes());
}

}  // namespace
}  // namespace tokamak
