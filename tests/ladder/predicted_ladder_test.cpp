#include "ladder/predicted_ladder.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"

namespace tokamak {
namespace {

void all_off(RunConfig& c, int64_t) { c.compile.disable_passes = {"fuse", "flash_attention"}; }
void fuse(RunConfig& c, int64_t) { std::erase(c.compile.disable_passes, "fuse"); }
void worse(RunConfig& c, int64_t) { c.compile.disable_passes = {"fuse", "flash_attention", "fused_optimizer"}; }
void same(RunConfig&, int64_t) {}
void accumulate(RunConfig& c, int64_t) { c.train.total_batch = 4 * c.train.batch * c.model.context; }

constexpr Rung kRungs[] = {
    {"off", all_off}, {"fuse", fuse}, {"worse", worse}, {"again", same}, {"beside", accumulate, true}};

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 64, .context = 64, .vocab = 256};
  config.train.batch = 4;
  return config;
}

std::vector<RungResult> predicted(int64_t available_bytes) {
  return predict_ladder(tiny(), cpu::nominal_platform(), available_bytes, kRungs, {});
}

TEST(PredictedLadder, ClimbsByPrediction) {
  std::vector<RungResult> rungs = predicted(0);
  ASSERT_EQ(rungs.size(), 5u);
  EXPECT_GT(rungs[1].speedup_step, 1);
  EXPECT_DOUBLE_EQ(rungs[1].speedup_total, rungs[0].ms / rungs[1].ms);
  EXPECT_FALSE(rungs[2].kept);
  EXPECT_LT(rungs[2].speedup_step, 1);
  // What was not kept is no part of the rungs after it.
  EXPECT_DOUBLE_EQ(rungs[3].ms, rungs[1].ms);
  EXPECT_TRUE(rungs[4].optional);
  EXPECT_FALSE(rungs[4].kept);
  EXPECT_LT(rungs[4].ms, 2 * rungs[3].ms);  // for as many tokens as the others
  for (const RungResult& rung : rungs) {
    EXPECT_NEAR(rung.tokens_per_second * rung.ms, 4 * 64 * 1e3, 1e-6) << rung.name;
    EXPECT_GT(rung.mfu, 0) << rung.name;
    EXPECT_EQ(format_predicted_rung(rung).rfind(rung.name, 0), 0u);
  }
}

TEST(PredictedLadder, WhatDoesNotFitIsTold) {
  int64_t off = predicted(0)[0].planned_bytes, fused = predicted(0)[1].planned_bytes;
  ASSERT_LT(fused, off);
  std::vector<RungResult> rungs = predicted(fused);
  EXPECT_NE(format_predicted_rung(rungs[0]).find("does not fit (needs"), std::string::npos);
  EXPECT_TRUE(rungs[1].ran());
  EXPECT_DOUBLE_EQ(rungs[1].speedup_total, 1);  // it is the first that fits
}

}  // namespace
}  // namespace tokamak
