#include "run/run_changes.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "compile/resolved_run.h"
#include "config/config.h"

namespace tokamak {
namespace {

// Eight sequences a step on so many data ranks.
RunConfig run_on(int64_t ranks, int64_t slots, int64_t zero = 0) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 1, .width = 8, .context = 16, .vocab = 61};
  config.train.batch = 8;
  config.mesh = {.data = ranks, .zero = zero, .slots = slots};
  return resolve(config, cpu::nominal_platform().target).settled();
}

TEST(RunChanges, WithAsManySlotsRanksChangeNothing) {
  RunConfig two = run_on(2, 4), one = run_on(1, 4), four = run_on(4, 4, 3);
  ASSERT_NE(one.train.batch, two.train.batch);
  EXPECT_EQ(describe_changes(two, one, 5), "");
  EXPECT_EQ(describe_changes(one, two, 5), "");
  EXPECT_EQ(describe_changes(two, four, 5), "");
}

TEST(RunChanges, WithAsManySlotsAPipelineChangesNothing) {
  RunConfig pipe = run_on(1, 4);
  pipe.mesh.pipe = 2, pipe.mesh.schedule = "interleaved", pipe.mesh.interleave = 2;
  EXPECT_EQ(describe_changes(run_on(2, 4), pipe, 5), "");
  pipe.mesh.slots = 1;
  EXPECT_NE(describe_changes(run_on(2, 1), pipe, 5).find("mesh.pipe 1 -> 2"), std::string::npos);
}

TEST(RunChanges, WithoutSlotsRanksAddInAnotherOrder) {
  EXPECT_EQ(describe_changes(run_on(1, 1), run_on(2, 1), 5), "changed since step 5: mesh.data 1 -> 2");
}

TEST(RunChanges, OtherSlotsAreAnotherOrder) {
  EXPECT_EQ(describe_changes(run_on(2, 2), run_on(2, 4), 5), "changed since step 5: mesh.slots 2 -> 4");
}

TEST(RunChanges, ALargerStepIsAChangeWithSlots) {
  RunConfig larger = run_on(2, 2);
  larger.train.batch *= 2;
  EXPECT_EQ(describe_changes(run_on(1, 2), larger, 5), "changed since step 5: train.batch 8 -> 16");
}

TEST(RunChanges, OtherAxesRoundInAnotherWay) {
  RunConfig tensor = run_on(2, 2);
  tensor.mesh.tensor = 2;
  EXPECT_EQ(describe_changes(run_on(2, 2), tensor, 5), "changed since step 5: mesh.tensor 1 -> 2");
}

TEST(RunChanges, ALongerRunIsToldWhatItDoesToTheSchedule) {
  RunConfig was = run_on(1, 1), is = was;
  is.train.steps = 4 * was.train.steps;
  std::string keeps = fmt::format("--optimizer.schedule_steps={} keeps the old one", was.train.steps);
  EXPECT_NE(describe_changes(was, is, 500).find("the schedule (cosine) is now that of a run of 4000 steps: " + keeps),
            std::string::npos)
      << describe_changes(was, is, 500);
  is.optimizer.schedule_steps = was.train.steps;
  EXPECT_EQ(describe_changes(was, is, 500),
            "changed since step 500: optimizer.schedule_steps 0 -> 1000, train.steps 1000 -> 4000");
  was.optimizer.schedule = is.optimizer.schedule = "inverse_sqrt";
  was.optimizer.schedule_steps = is.optimizer.schedule_steps = 0;
  EXPECT_EQ(describe_changes(was, is, 500), "changed since step 500: train.steps 1000 -> 4000");
}

}  // namespace
}  // namespace tokamak
