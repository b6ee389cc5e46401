#include "plan/timeline.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

struct Timed {
  int stream;
  double seconds;
  std::vector<int> after = {};
  double taken_share = 0;
};

// A plan of launches alone; what they launch does not matter here.
Plan plan_of(const std::vector<Timed>& launches, std::vector<PlannedStream> streams) {
  Plan plan;
  plan.streams = std::move(streams);
  for (const Timed& timed : launches) {
    Launch& launch = plan.launches.emplace_back();
    launch.stream = timed.stream;
    launch.seconds = timed.seconds;
    launch.after = timed.after;
    launch.taken_share = timed.taken_share;
  }
  return plan;
}

double end_of(const std::vector<Timed>& launches, std::vector<PlannedStream> streams) {
  return end_of_timeline(simulate(plan_of(launches, std::move(streams))));
}

const std::vector<PlannedStream> kShared{{"compute"}, {"side"}};
const std::vector<PlannedStream> kApart{{"compute"}, {.name = "link", .resource = 1}};

TEST(Timeline, OfOneStreamIsTheSumToTheBit) {
  std::vector<Timed> launches;
  double sum = 0;
  for (int i = 1; i < 100; ++i) {
    launches.push_back({0, 1.0 / i});
    sum += 1.0 / i;
  }
  EXPECT_EQ(end_of(launches, {{"compute"}}), sum);
  EXPECT_EQ(end_of({}, {{"compute"}}), 0);
}

TEST(Timeline, StreamsOfOneResourceShareIt) {
  EXPECT_DOUBLE_EQ(end_of({{0, 3}, {1, 1}}, kShared), 4) << "1 is done at 2, when 0 has two of its seconds left";
  EXPECT_DOUBLE_EQ(end_of({{0, 3}, {1, 1}, {1, 5}}, kShared), 9);
}

TEST(Timeline, StreamsOfDifferentResourcesDoNot) {
  EXPECT_DOUBLE_EQ(end_of({{0, 3}, {1, 1}}, kApart), 3);
  EXPECT_DOUBLE_EQ(end_of({{0, 3}, {1, 1}, {1, 5}}, kApart), 6);
}

// 1 takes a quarter of the device from 0 for two seconds, in which that does 1.5 of its own.
TEST(Timeline, WhatTakesAShareSlowsDownWhatRunsBeside) {
  EXPECT_DOUBLE_EQ(end_of({{0, 3}, {1, 2, {}, 0.25}}, kApart), 3.5);
  EXPECT_DOUBLE_EQ(end_of({{0, 1}, {1, 2, {}, 0.25}}, kApart), 2) << "and is not slowed down by it";
  EXPECT_DOUBLE_EQ(end_of({{0, 1}, {1, 20, {}, 5}}, kApart), 20) << "nor is it stopped: 1 / 0.1 seconds";
}

TEST(Timeline, SaysWhenEachLaunchRuns) {
  std::vector<Span> spans = simulate(plan_of({{0, 2}, {1, 3, {0}}, {0, 1}, {0, 1, {1}}}, kApart));
  std::vector<std::pair<double, double>> times;
  for (const Span& span : spans) times.emplace_back(span.begin, span.end);
  EXPECT_EQ(times, (std::vector<std::pair<double, double>>{{0, 2}, {2, 5}, {2, 3}, {5, 6}}));
}

TEST(Timeline, WaitsAreIdleTime) {
  EXPECT_DOUBLE_EQ(end_of({{0, 2}, {1, 3, {0}}, {0, 1}}, kApart), 5) << "1 begins at 2";
  EXPECT_DOUBLE_EQ(end_of({{0, 2}, {1, 3, {0}}, {0, 1, {1}}}, kApart), 6);
  EXPECT_DOUBLE_EQ(end_of({{0, 2}, {1, 3}, {0, 1, {1}}}, kApart), 4);
}

// Three streams, two of which share: while the third waits for both.
TEST(Timeline, ALaunchMayWaitForSeveral) {
  std::vector<PlannedStream> streams{{"compute"}, {"side"}, {.name = "link", .resource = 1}};
  EXPECT_DOUBLE_EQ(end_of({{0, 2}, {1, 1}, {2, 4, {0, 1}}}, streams), 7);
  EXPECT_DOUBLE_EQ(end_of({{0, 2}, {1, 1}, {2, 4, {1}}}, streams), 6) << "1 is done at 2";
}

}  // namespace
}  // namespace tokamak
