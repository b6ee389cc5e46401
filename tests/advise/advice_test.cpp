#include "advise/advice.h"

#include <gtest/gtest.h>

#include "config/gpus.h"
#include "config/preset.h"
#include "graph/gpu_target.h"

namespace tokamak {
namespace {

Platform h200() { return Platform(gpu_target(gpu_rates(gpu_model("h200")))); }

RunConfig run_with(const ModelConfig& model) {
  RunConfig run;
  run.model = model;
  return run;
}

RunConfig preset(const char* name) {
  ModelConfig model{.preset = name};
  apply_preset(model);
  return run_with(model);
}

const Advice* find(const std::vector<Advice>& list, const std::string& piece) {
  for (const Advice& one : list)
    if (one.text.find(piece) != one.text.npos) return &one;
  return nullptr;
}

TEST(Advice, SizesThatFitGetNone) {
  ModelConfig model{.layers = 24, .heads = 16, .width = 2048, .context = 1024, .vocab = 50304};
  // 132 multiprocessors have full waves where tiles are a multiple of them.
  std::vector<Advice> list = advise(run_with(model), {.micro_batch = 33}, h200());
  for (const char* piece : {"width", "heads", "vocabulary", "update", "below"})
    EXPECT_EQ(find(list, piece), nullptr) << piece << ": " << format_advice(list);
}

TEST(Advice, NamesWhatDoesNotFit) {
  std::vector<Advice> list = advise(preset("gpt2-1558m"), {.micro_batch = 8}, h200());
  const Advice* width = find(list, "width 1600 is no multiple of 128");
  ASSERT_TRUE(width) << format_advice(list);
  EXPECT_GT(width->gain, 0.005);
  EXPECT_LT(width->gain, 0.1);
  EXPECT_TRUE(find(list, "25 heads do not divide over 2, 4, 8 tensor ranks")) << format_advice(list);
  const Advice* vocabulary = find(list, "vocabulary 50257");
  ASSERT_TRUE(vocabulary);
  EXPECT_LT(vocabulary->gain, 0.001) << "it is padded by itself";
}

TEST(Advice, HeadsOfOddSizesCostWhatTheirPaddingDoes) {
  ModelConfig model{.layers = 12, .heads = 16, .width = 768, .context = 1024, .vocab = 50304};  // heads of 48
  std::vector<Advice> list = advise(run_with(model), {.micro_batch = 16}, h200());
  const Advice* heads = find(list, "heads of 48 are computed as ones of 64: 12 heads would have 64");
  ASSERT_TRUE(heads) << format_advice(list);
  EXPECT_GT(heads->gain, 0.01);
}

TEST(Advice, SmallBatchesAreLimitedByMemory) {
  RunConfig run = preset("gpt2-124m");
  run.model.context = 64;
  std::vector<Advice> list = advise(run, {.micro_batch = 1}, h200());
  EXPECT_TRUE(find(list, "a micro-batch of 64 tokens is below the 162")) << format_advice(list);
  EXPECT_TRUE(find(list, "are the update of parameters")) << format_advice(list);
  EXPECT_FALSE(find(advise(preset("gpt2-124m"), {.micro_batch = 64}, h200()), "update of parameters"));
}

TEST(Advice, AnUpdateThatIsDividedIsNoReasonForMoreTokens) {
  RunConfig run = preset("gpt3-6.7b");
  ParallelLayout layout{.mesh = {.data = 64}, .micro_batch = 1};
  EXPECT_TRUE(find(advise(run, layout, h200()), "update of parameters"));
  layout.mesh.zero = 3;
  EXPECT_FALSE(find(advise(run, layout, h200()), "update of parameters"));
}

TEST(Advice, CountsTheWavesOfEachProduct) {
  ModelConfig model{.layers = 4, .heads = 2, .width = 256, .context = 256, .vocab = 256};
  // The MLP's first product has 133 x 8 tiles: 8 full waves of 132 and one with 8 of them.
  std::vector<Advice> list = advise(run_with(model), {.micro_batch = 133}, h200());
  const Advice* up =
      find(list, "mlp.c_fc.weight, 34048 x 1024: 1064 tiles of 256 x 128 in 9 waves of 132, the last one 94% idle");
  ASSERT_TRUE(up) << format_advice(list);
  EXPECT_GT(up->gain, 0.005);
}

TEST(Advice, ProductsAreAllOfAStep) {
  RunConfig run = preset("gpt2-124m");
  double flops = 0;
  for (const MatmulShape& matmul : rank_work(run, {.micro_batch = 4}, h200()).matmuls) flops += matmul.flops();
  double N = 4 * 1024, C = 768;
  EXPECT_NEAR(flops / (6 * N * (12 * 12 * C * C + 50304 * C)), 1, 1e-12);
}

}  // namespace
}  // namespace tokamak
