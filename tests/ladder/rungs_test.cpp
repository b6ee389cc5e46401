#include "ladder/rungs.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "tests/support/resolve_first.h"

#include <string>
#include <vector>

namespace tokamak {
namespace {

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 301};
  return config;
}

int64_t first_rung_bytes(RunConfig config, int64_t batch) {
  config.train.batch = batch;
  gpu_rungs()[0].switch_on(config, 0);
  return compile_step(config, cpu::nominal_platform()).total_bytes();
}

int64_t choose(const RunConfig& config, int64_t free_bytes, int64_t most = 64) {
  return choose_batch(config, cpu::nominal_platform(), gpu_rungs()[0], free_bytes, most);
}

TEST(ChooseBatch, TheLargestThatFitsWithATenthLeft) {
  RunConfig config = tiny();
  int64_t sixteen = first_rung_bytes(config, 16);
  EXPECT_EQ(choose(config, int64_t(double(sixteen) / 0.9) + 16), 16);
  EXPECT_EQ(choose(config, sixteen), 8) << "fits, but leaves nothing free";
  EXPECT_EQ(choose(config, first_rung_bytes(config, 64) * 10), 64);
  EXPECT_EQ(choose(config, 0), 64) << "what is free is not known";
}

TEST(ChooseBatch, OneWhenNothingFits) { EXPECT_EQ(choose(tiny(), 1000), 1); }

TEST(ChooseBatch, KeepsToPowersOfTwoAndToTheLimit) {
  EXPECT_EQ(choose(tiny(), int64_t(1) << 40, 4), 4);
  EXPECT_EQ(choose(tiny(), int64_t(1) << 40, 7), 4);
}

TEST(ChooseBatch, TotalBatchMustBeMadeOfWholeMicroBatches) {
  RunConfig config = tiny();
  config.train.total_batch = 8 * config.model.context;
  EXPECT_EQ(choose(config, int64_t(1) << 40), 8);
}

// In the order of a PyTorch ladder, so that tables compare row by row.
TEST(GpuRungs, SwitchOnOneThingAfterTheOther) {
  RunConfig config = tiny();
  std::vector<Precision> precisions;
  for (const Rung& rung : gpu_rungs()) {
    if (rung.optional) continue;
    CompileConfig before = config.compile;
    rung.switch_on(config, 0);
    if (precisions.empty()) {
      EXPECT_EQ(config.compile.disable_passes.size(), 5u);
      EXPECT_FALSE(config.compile.low_residual || config.compile.cuda_graph);
    } else {
      auto passes = int(before.disable_passes.size() - config.compile.disable_passes.size());
      int changes = passes + (before.precision != config.compile.precision) +
                    (before.low_residual != config.compile.low_residual) +
                    (before.cuda_graph != config.compile.cuda_graph);
      EXPECT_EQ(changes, 1) << rung.name;
    }
    precisions.push_back(config.compile.precision);
  }
  ASSERT_GE(precisions.size(), 3u);
  EXPECT_EQ(precisions[0], Precision::kFp32);
  EXPECT_EQ(precisions[1], Precision::kTf32);
  EXPECT_EQ(precisions[2], Precision::kBf16);
  EXPECT_TRUE(config.compile.disable_passes.empty() && config.compile.low_residual && config.compile.cuda_graph);
}

TEST(Rungs, LeaveOffWhatTheUserSwitchedOff) {
  for (std::span<const Rung> rungs : {cpu_rungs(), gpu_rungs()}) {
    RunConfig config = tiny();
    config.compile.disable_passes = {"merge_casts"};
    for (const Rung& rung : rungs) {
      rung.switch_on(config, 0);
      EXPECT_EQ(config.compile.disable_passes.front(), "merge_casts") << rung.name;
    }
    EXPECT_EQ(config.compile.disable_passes.size(), 1u);
  }
}

TEST(GpuRungs, OptionalOnes) {
  auto apply = [](std::string_view name) {
    RunConfig config = tiny();
    for (const Rung& rung : gpu_rungs()) {
      if (rung.name != name) continue;
      EXPECT_TRUE(rung.optional) << name;
      rung.switch_on(config, int64_t(3) << 30);
      return config;
    }
    ADD_FAILURE() << "no rung " << name;
    return config;
  };
  EXPECT_EQ(apply("FP16 + loss scaling").compile.precision, Precision::kFp16);
  EXPECT_EQ(apply("recompute (memory budget)").compile.memory_budget_gib, 1.5);
  RunConfig accumulated = apply("accumulation x4");
  EXPECT_EQ(accumulated.train.total_batch, 4 * accumulated.train.batch * accumulated.model.context);
  EXPECT_FALSE(apply("weight tying off").model.tie_weights);
}

TEST(GpuRungs, OptionalOnesApplyWhereTheyChangeSomething) {
  auto names = [](const RunConfig& config) {
    std::vector<std::string_view> found;
    for (const Rung& rung : gpu_rungs())
      if (rung.optional && applies(rung, config, int64_t(1) << 30)) found.push_back(rung.name);
    return found;
  };
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(names(tiny()), (Names{"FP16 + loss scaling", "recompute (memory budget)", "accumulation x4",
                                  "weight tying off", "sums in any order"}));
  RunConfig untied = tiny();
  untied.model.tie_weights = untied.compile.deterministic = false;
  EXPECT_EQ(names(untied), (Names{"FP16 + loss scaling", "recompute (memory budget)", "accumulation x4"}));
  RunConfig refused = tiny();  // as by a family that is always tied
  refused.model.family = "unknown";
  EXPECT_EQ(names(refused), Names{});
  EXPECT_TRUE(applies(gpu_rungs()[0], refused, 0));
}

TEST(GpuRungs, Fp8IsForThoseThatHaveIt) {
  RunConfig config = tiny();
  const Rung& last = gpu_rungs(true).back();
  last.switch_on(config, 0);
  EXPECT_EQ(config.compile.precision, Precision::kFp8);
  EXPECT_TRUE(last.optional);
  EXPECT_EQ(gpu_rungs().size() + 1, gpu_rungs(true).size());
}

}  // namespace
}  // namespace tokamak
