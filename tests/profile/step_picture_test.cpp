#include "profile/step_picture.h"

#include <gtest/gtest.h>

#include "tests/support/graph_text.h"

namespace tokamak {
namespace {

Plan chain_plan() {
  return make_plan(test::parse(R"(graph step {
    input x = %0 : f32[64]
    %1 = exp(%0) : f32[64]
    %2 = reduce_sum(%1) {dims=[0], keep=true} : f32[1]
    %3 = tanh(%2) : f32[1]
    result loss = %3
  })"),
                   Platform());
}

// Two steps, the second from 10 s on; the kernels of each take a second, one after the other, from 1 s behind its
// begin.
StepProfile two_steps(const Plan& plan) {
  StepProfile profile{.steps = 2, .seconds = 20};
  for (double at : {0.0, 10.0}) {
    profile.works.push_back({.kind = Work::Kind::kRun, .plan = &plan, .begin = at, .end = at + 4});
    for (int i = 0; i < int(plan.launches.size()); ++i)
      profile.works.push_back(
          {.kind = Work::Kind::kLaunch, .plan = &plan, .index = i, .begin = at + i + 1, .end = at + i + 2});
  }
  return profile;
}

TEST(StepTimeline, IsOfTheLastStepFromItsBegin) {
  Plan plan = chain_plan();
  StepTimeline timeline = step_timeline(two_steps(plan));
  ASSERT_EQ(timeline.lanes.size(), 1u);
  EXPECT_EQ(timeline.streams[0], "compute");
  ASSERT_EQ(timeline.lanes[0].bars.size(), 3u);
  EXPECT_EQ(timeline.lanes[0].bars[0].begin, 1);
  EXPECT_EQ(timeline.lanes[0].bars[1].kind, "normalisation");
  EXPECT_EQ(timeline.seconds, 4);
  EXPECT_TRUE(step_timeline({}).lanes.empty());
}

TEST(MemoryPicture, SaysWhatLivesWhenAndWhereThePeakIs) {
  Plan plan = chain_plan();
  MemoryPicture picture = memory_picture(plan, two_steps(plan));
  EXPECT_EQ(picture.seconds, 4);
  EXPECT_EQ(picture.peak_bytes, 260);
  EXPECT_EQ(picture.peak_kernel, "reduce_sum");
  EXPECT_EQ(picture.peak_seconds, 2);
  ASSERT_EQ(picture.blocks.size(), 2u);
  EXPECT_EQ(picture.blocks[0].begin, 1);
  EXPECT_EQ(picture.blocks[0].end, 3);
  EXPECT_EQ(picture.blocks[0].label, "exp f32[64], 256 B");
  EXPECT_EQ(picture.blocks[1].end, 4) << "the result, to the end";
  EXPECT_TRUE(picture.blocks[0].at_peak && picture.blocks[1].at_peak);
}

}  // namespace
}  // namespace tokamak
