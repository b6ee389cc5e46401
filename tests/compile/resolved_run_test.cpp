// What is left open is said once, and what follows from it: precision, slots, micro-batches.
#include "compile/resolved_run.h"

#include "config/json.h"
#include "graph/target.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

RunConfig tiny(int64_t micro_batches) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 16, .context = 8, .vocab = 61};
  config.train.batch = 2;
  config.train.total_batch = micro_batches * 2 * 8;
  return config;
}

ResolvedRun resolve(const RunConfig& config) { return tokamak::resolve(config, Target()); }

TEST(Resolve, AutoTakesTheFastest) {
  auto chosen = [](double f32, double tf32, double bf16) {
    RunConfig config;
    Target target{.f32_flops = f32, .bf16_flops = bf16, .tf32_flops = tf32};
    return tokamak::resolve(config, target).compile.precision;
  };
  EXPECT_EQ(chosen(1, 0, 1.05), Precision::kFp32);
  EXPECT_EQ(chosen(1, 0, 2), Precision::kBf16);
  EXPECT_EQ(chosen(1, 8, 8.5), Precision::kTf32);
  EXPECT_EQ(chosen(1, 8, 16), Precision::kBf16);
}

TEST(Resolve, AsksNoMoreOfATargetThanItHas) {
  RunConfig config;
  config.compile.precision = Precision::kTf32;
  config.compile.streams = 2;
  Target target{.f32_flops = 1, .tf32_flops = 8, .streams = 2};
  EXPECT_EQ(tokamak::resolve(config, target).compile.precision, Precision::kTf32);
  EXPECT_EQ(tokamak::resolve(config, target).compile.streams, 2);
  target.tf32_flops = 0, target.streams = 1;
  EXPECT_EQ(tokamak::resolve(config, target).compile.precision, Precision::kFp32);
  EXPECT_EQ(tokamak::resolve(config, target).compile.streams, 1);
}

TEST(Resolve, HasSlotsOnSeveralDataRanks) {
  RunConfig config = tiny(4);
  EXPECT_FALSE(resolve(config).has_slots());
  config.mesh.data = 2;
  EXPECT_EQ(resolve(config).slots.count, 8) << "ranks x micro-batches";
  EXPECT_EQ(resolve(config).micro_batches, 4) << "as without";
  EXPECT_EQ(resolve(config).batch, 2);
  config.mesh.slots = 1;
  EXPECT_FALSE(resolve(config).has_slots()) << "as is asked for";
  config = tiny(3);
  config.mesh.data = 2;
  EXPECT_FALSE(resolve(config).has_slots()) << "6 is no power of two";
  config = tiny(4);
  config.train.batch = 1, config.train.total_batch /= 2;
  config.mesh.data = 2;
  EXPECT_FALSE(resolve(config).has_slots()) << "a rank has no share of one sequence";
  config = tiny(4);
  config.mesh.pipe = 2;
  EXPECT_EQ(resolve(config).slots.count, 4) << "a pipeline's micro-batches";
}

TEST(Resolve, HasTheMicroBatchThatSlotsLeaveToARun) {
  RunConfig config = tiny(4);  // 8 sequences
  config.mesh = {.data = 2, .slots = 8};
  ResolvedRun run = resolve(config);
  EXPECT_EQ(run.batch, 2);
  EXPECT_EQ(run.micro_batches, 4);
  EXPECT_EQ(run.program_sequences(), 1);
  config.mesh.data = 8;
  run = resolve(config);
  EXPECT_EQ(run.batch, 8);
  EXPECT_EQ(run.micro_batches, 1);
  EXPECT_EQ(run.program_sequences(), 1);
  config.mesh = {.data = 2, .slots = 2};
  run = resolve(config);
  EXPECT_EQ(run.batch, 8) << "of all data ranks";
  EXPECT_EQ(run.micro_batches, 1);
  EXPECT_EQ(run.program_sequences(), 4);
  EXPECT_EQ(run.asked.train.batch, 2) << "what was asked for stays";
}

TEST(Resolve, WithoutSlotsAProgramIsForAllDataRanks) {
  RunConfig config = tiny(3);
  config.mesh.data = 2;
  ResolvedRun run = resolve(config);
  EXPECT_EQ(run.program_sequences(), 2);
  EXPECT_EQ(run.micro_batches, 3);
  EXPECT_EQ(run.data_ranks(), 2);
  EXPECT_EQ(run.slots.ranks.size, 1);
}

TEST(Resolve, TellsSlotsWhoAddsUp) {
  RunConfig config = tiny(4);
  config.mesh = {.data = 2, .context = 2, .tensor = 2, .zero = 1, .slots = 8};
  EXPECT_EQ(resolve(config).slots.other_ranks, 4);
  EXPECT_FALSE(resolve(config).slots.sums_over_ranks_first);
  config.mesh.zero = 2;
  EXPECT_TRUE(resolve(config).slots.sums_over_ranks_first);
}

// Kept with a run, so that a later start with other ranks or another target resolves to the same.
TEST(Resolve, WhatIsSettledLeavesNothingOpen) {
  std::vector<RunConfig> runs(6, tiny(4));
  runs[1].mesh = {.data = 2};
  runs[2].mesh = {.data = 2, .slots = 8};
  runs[3].mesh = {.data = 4, .slots = 4};
  runs[4].mesh = {.pipe = 2, .data = 2, .slots = 2};
  runs[5].mesh = {.data = 2, .slots = 8};
  runs[5].train = {.batch = 8};  // all of a step
  for (RunConfig& config : runs) {
    config.compile.streams = 2;
    Target fast{.f32_flops = 1, .bf16_flops = 3, .streams = 2}, slow{.f32_flops = 3, .bf16_flops = 1, .streams = 2};
    ResolvedRun run = tokamak::resolve(config, fast);
    RunConfig settled = run.settled();
    EXPECT_EQ(settled.compile.precision, Precision::kBf16);
    EXPECT_EQ(settled.mesh.slots, run.slots.count);
    EXPECT_EQ(settled.step_tokens(), config.step_tokens());
    ResolvedRun again = tokamak::resolve(settled, slow);
    EXPECT_EQ(to_json(again.settled()), to_json(settled));
    EXPECT_EQ(again.batch, run.batch);
    EXPECT_EQ(again.micro_batches, run.micro_batches);
    EXPECT_EQ(again.slots.count, run.slots.count);
  }
}

TEST(Resolve, RefusesATotalThatIsNoMultiple) {
  RunConfig config = tiny(1);
  config.train.total_batch = 40;
  expect_user_error([&] { resolve(config); },
                    {"multiple of train.batch x model.context = 16 tokens, got 40", "the nearest below is 32"});
}

TEST(Resolve, RefusesSlotsThatDoNotFit) {
  RunConfig config = tiny(4);  // 8 sequences
  for (int64_t slots : {2, 6, 16}) {
    config.mesh = {.data = 4, .slots = slots};
    expect_user_error([&] { resolve(config); }, {"[mesh.slots]", "4, 8, 1 (sums in any order) would fit"});
  }
}

TEST(Resolve, KnowsWhatRunsOnOneRank) {
  RunConfig config = tiny(1);
  EXPECT_NO_THROW(require_one_rank(resolve(config)));
  config.mesh.tensor = 2;
  expect_user_error([&] { require_one_rank(resolve(config)); }, {"[mesh] expected one rank here, got tensor 2"});
}

TEST(Resolve, ScalesTheLossInFp16Alone) {
  RunConfig config = tiny(1);
  config.compile.precision = Precision::kBf16;
  EXPECT_FALSE(resolve(config).loss_scaling());
  config.compile.precision = Precision::kFp16;
  config.compile.loss_scale_growth_interval = 7;
  EXPECT_EQ(resolve(config).loss_scaling()->growth_interval, 7);
}

// Micro-batches, and the windows of a slot, are as large as in the whole step.
TEST(Resolve, AStepOfTheRampHasFewerMicroBatches) {
  RunConfig config = tiny(8);
  config.train.ramp = {"10: total_batch=32 sequence=4", "20: total_batch=64"};
  for (int64_t slots : {1, 8}) {
    config.mesh.slots = slots;
    ResolvedRun first = tokamak::resolve(config, {}, 9), second = tokamak::resolve(config, {}, 10),
                whole = tokamak::resolve(config, {}, 20);
    EXPECT_EQ(first.micro_batches, 2);
    EXPECT_EQ(second.micro_batches, 4);
    EXPECT_EQ(whole.micro_batches, 8);
    EXPECT_EQ(first.slots.count, slots == 1 ? 1 : 2);
    EXPECT_EQ(whole.slots.count, slots);
    EXPECT_EQ(first.batch, 2);
    EXPECT_EQ(first.program_windows(), 2);
    EXPECT_EQ(first.program_sequences(), 4) << "of half the length";
    EXPECT_EQ(whole.program_sequences(), 2);
    EXPECT_EQ(to_json(first.settled()), to_json(whole.settled())) << "one run";
    EXPECT_EQ(tokamak::resolve(first.settled(), {}, 9).micro_batches, 2);
  }
}

// Slots that are left open are none where a phase cannot have its share of them.
TEST(Resolve, OpenSlotsFitTheRamp) {
  RunConfig config = tiny(4);
  config.mesh.data = 2;
  config.train.ramp = {"10: total_batch=32"};
  EXPECT_EQ(tokamak::resolve(config, {}, 0).whole_slots, 8);
  EXPECT_EQ(tokamak::resolve(config, {}, 0).slots.count, 4);
  config.train.ramp = {"10: total_batch=48"};
  EXPECT_EQ(tokamak::resolve(config, {}, 0).whole_slots, 1) << "three quarters of eight are no power of two";
}

}  // namespace
}  // namespace tokamak
