#include "advise/block_costs.h"

#include <gtest/gtest.h>

#include "advise/training_request.h"
#include "compile/step_compiler.h"
#include "config/cluster.h"
#include "config/preset.h"
#include "graph/gpu_target.h"

namespace tokamak {
namespace {

RunConfig small_run() {
  RunConfig run;
  run.model = {.layers = 12, .heads = 4, .width = 256, .context = 256, .vocab = 1024};
  return run;
}

Platform h200() { return Platform(gpu_target(gpu_rates(read_cluster("h200").gpu))); }

ParallelLayout layout_with(int64_t pipe, int64_t micro_batches) {
  ParallelLayout layout{.mesh = {.pipe = pipe, .data = 1}, .micro_batch = 2, .micro_batches = micro_batches};
  layout.mesh.slots = 1;
  return layout;
}

TEST(BlockKey, IsThatOfTheBlocksAlone) {
  ParallelLayout layout = layout_with(2, 8), other = layout_with(4, 16);
  other.mesh.schedule = "interleaved";
  other.mesh.interleave = 2;
  EXPECT_EQ(block_key(layout), block_key(other));
  other.mesh.tensor = 2;
  EXPECT_NE(block_key(layout), block_key(other));
  EXPECT_NE(block_key(layout_with(1, 1)), block_key(layout_with(1, 2))) << "gradients are added";
  EXPECT_NE(block_key(layout_with(1, 2)), block_key(layout_with(2, 2)));
}

TEST(BlockCosts, AreThoseOfACompiledStep) {
  RunConfig run = small_run();
  ParallelLayout layout = layout_with(1, 1);
  BlockCosts blocks(run, layout);
  StageCost cost = blocks.at({3}, h200());
  run.model.layers = 3;
  CompiledStep step = compile_step(resolve(run_of(run, layout), h200().target), h200());
  EXPECT_DOUBLE_EQ(cost.programs.at("step").time.total(), step.seconds());
  EXPECT_DOUBLE_EQ(cost.fixed() + cost.intermediate(), double(step.total_bytes()));
  EXPECT_DOUBLE_EQ(cost.intermediate(), double(step.intermediate_bytes()));
}

TEST(BlockCosts, OfBlocksForWhichTheCompilerHasNoChoice) {
  ParallelLayout layout = layout_with(1, 4);
  layout.mesh.data = 2;
  auto has_last = [&](FewBlocks few) {
    return BlockCosts(small_run(), layout).at(few, h200()).programs.contains("last_micro_batch");
  };
  EXPECT_TRUE(has_last({.blocks = 2, .sums_with_last = true}));
  EXPECT_FALSE(has_last({.blocks = 2, .sums_with_last = false}));
  EXPECT_FALSE(has_last({.blocks = 2, .budget_gib = 1, .sums_with_last = true})) << "sums that wait take memory";
  layout.mesh.reduce_gradients = "last";
  EXPECT_TRUE(has_last({.blocks = 2, .budget_gib = 1, .sums_with_last = false})) << "as users said";
}

TEST(BlockCosts, ArePricedAnewForOtherRates) {
  RunConfig run = small_run();
  ParallelLayout layout = layout_with(1, 1);
  BlockCosts blocks(run, layout);
  double before = blocks.at({2}, h200()).programs.at("step").time.total();
  Platform slow = h200();
  slow.target.launch_seconds *= 4;
  double after = blocks.at({2}, slow).programs.at("step").time.total();
  EXPECT_GT(after, 1.5 * before) << "so small are they";
  BlockCosts anew(run, layout);
  EXPECT_NEAR(anew.at({2}, slow).programs.at("step").time.total() / after, 1, 0.02);
}

void expect_same(const StageCost& a, const StageCost& b) {
  EXPECT_EQ(a.programs.size(), b.programs.size());
  for (const auto& [name, program] : a.programs) {
    EXPECT_DOUBLE_EQ(program.time.total(), b.programs.at(name).time.total()) << name;
    EXPECT_DOUBLE_EQ(program.arena, b.programs.at(name).arena) << name;
  }
  EXPECT_DOUBLE_EQ(a.fixed(), b.fixed());
}

// A budget of 4 MiB leaves chunks of the classifier half of the rows, another one all of them.
TEST(BlockCosts, OfSeveralBudgetsBeginTogetherOnlyWhereTheyMay) {
  RunConfig run = small_run();
  ParallelLayout layout = layout_with(1, 2);
  layout.micro_batch = 16;
  BlockCosts blocks(run, layout);
  StageCost whole = blocks.at({.blocks = 2}, h200());
  for (double budget : {64.0, 1.0 / 256}) {
    FewBlocks few{.blocks = 2, .kinds = 2, .budget_gib = budget};
    BlockCosts alone(run, layout);
    expect_same(blocks.at(few, h200()), alone.at(few, h200()));
    EXPECT_LT(blocks.at(few, h200()).intermediate(), whole.intermediate());
  }
}

TEST(BlockCosts, ShareTheUpdateOfTheirMesh) {
  RunConfig run = small_run();
  BlockLibrary library;
  auto compare = [&](const ParallelLayout& layout, const FewBlocks& few) {
    BlockCosts alone(run, layout);
    expect_same(library.of(run, layout).at(few, h200()), alone.at(few, h200()));
  };
  for (int64_t zero : {0, 1})
    for (int64_t micro_batch : {2, 4}) {
      ParallelLayout step = layout_with(1, 2), pipeline = layout_with(4, 8);
      for (ParallelLayout* layout : {&step, &pipeline}) {
        layout->mesh.data = 2, layout->mesh.zero = zero;
        layout->micro_batch = micro_batch;
      }
      for (int64_t blocks : {2, 3}) compare(step, {.blocks = blocks, .sums_with_last = false});
      for (size_t stage : {0, 1, 2})
        for (bool splits : {false, true}) compare(pipeline, {.blocks = 2, .stage = stage, .splits_backward = splits});
    }
}

// A first stage, one in the middle and a last one; the ends have tables.
TEST(BlockCosts, OfAPipelineHaveThreeStages) {
  RunConfig run = small_run();
  BlockCosts blocks(run, layout_with(4, 8));
  auto stage = [&](size_t number) { return blocks.at({.blocks = 2, .stage = number}, h200()); };
  EXPECT_GT(stage(0).kept.weights, stage(1).kept.weights);
  EXPECT_GT(stage(2).kept.weights, stage(1).kept.weights);
  EXPECT_FALSE(stage(1).of_micro_batch.empty());
  EXPECT_GT(stage(1).residual, 0);
  EXPECT_TRUE(
      blocks.at({.blocks = 2, .stage = 1, .splits_backward = true}, h200()).programs.contains("backward_weight"));
}

TEST(StageCost, MixesWhatOneOfThemLacks) {
  StageCost less, more;
  less.programs["step"].arena = 10;
  more.programs["step"].arena = 20;
  more.programs["weights"].time.data = 4;
  more.kept.optimizer = 6;
  StageCost mixed = mix(less, more, 1.5);
  EXPECT_DOUBLE_EQ(mixed.programs["step"].arena, 25);
  EXPECT_DOUBLE_EQ(mixed.programs["weights"].time.total(), 6);
  EXPECT_DOUBLE_EQ(mixed.kept.total(), 9);
}

}  // namespace
}  // namespace tokamak
