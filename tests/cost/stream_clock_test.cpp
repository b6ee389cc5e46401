#include "cost/stream_clock.h"

#include <gtest/gtest.h>

#include <utility>

namespace tokamak {
namespace {

const std::vector<int> kShared{0, 0}, kApart{0, 1};

StreamClock clock_of(const std::vector<StreamTask>& tasks, const std::vector<int>& resources) {
  StreamClock clock(resources);
  for (const StreamTask& task : tasks) clock.add(task);
  return clock;
}

double end_of(const std::vector<StreamTask>& tasks, const std::vector<int>& resources) {
  double end = 0;
  for (const Span& span : clock_of(tasks, resources).run()) end = std::max(end, span.end);
  return end;
}

StreamTask task(int stream, double seconds, std::vector<int> after = {}, double taken_share = 0) {
  return {stream, seconds, taken_share, std::move(after)};
}

TEST(StreamClock, OfOneStreamIsTheSumToTheBit) {
  std::vector<StreamTask> tasks;
  double sum = 0;
  for (int i = 1; i < 100; ++i) {
    tasks.push_back(task(0, 1.0 / i));
    sum += 1.0 / i;
  }
  EXPECT_EQ(end_of(tasks, {0}), sum);
  EXPECT_EQ(end_of({}, {0}), 0);
}

TEST(StreamClock, StreamsOfOneResourceShareIt) {
  EXPECT_DOUBLE_EQ(end_of({task(0, 3), task(1, 1)}, kShared), 4)
      << "1 is done at 2, when 0 has two of its seconds left";
  EXPECT_DOUBLE_EQ(end_of({task(0, 3), task(1, 1), task(1, 5)}, kShared), 9);
}

TEST(StreamClock, StreamsOfDifferentResourcesDoNot) {
  EXPECT_DOUBLE_EQ(end_of({task(0, 3), task(1, 1)}, kApart), 3);
  EXPECT_DOUBLE_EQ(end_of({task(0, 3), task(1, 1), task(1, 5)}, kApart), 6);
}

// 1 takes a quarter of the device from 0 for two seconds, in which that does 1.5 of its own.
TEST(StreamClock, WhatTakesAShareSlowsDownWhatRunsBeside) {
  EXPECT_DOUBLE_EQ(end_of({task(0, 3), task(1, 2, {}, 0.25)}, kApart), 3.5);
  EXPECT_DOUBLE_EQ(end_of({task(0, 1), task(1, 2, {}, 0.25)}, kApart), 2) << "and is not slowed down by it";
  EXPECT_DOUBLE_EQ(end_of({task(0, 1), task(1, 20, {}, 5)}, kApart), 20) << "nor is it stopped: 1 / 0.1 seconds";
}

TEST(StreamClock, SaysWhenEachTaskRuns) {
  std::vector<Span> spans = clock_of({task(0, 2), task(1, 3, {0}), task(0, 1), task(0, 1, {1})}, kApart).run();
  std::vector<std::pair<double, double>> times;
  for (const Span& span : spans) times.emplace_back(span.begin, span.end);
  EXPECT_EQ(times, (std::vector<std::pair<double, double>>{{0, 2}, {2, 5}, {2, 3}, {5, 6}}));
}

TEST(StreamClock, WaitsAreIdleTime) {
  EXPECT_DOUBLE_EQ(end_of({task(0, 2), task(1, 3, {0}), task(0, 1)}, kApart), 5) << "1 begins at 2";
  EXPECT_DOUBLE_EQ(end_of({task(0, 2), task(1, 3, {0}), task(0, 1, {1})}, kApart), 6);
  EXPECT_DOUBLE_EQ(end_of({task(0, 2), task(1, 3), task(0, 1, {1})}, kApart), 4);
}

// Three streams, two of which share: while the third waits for both.
TEST(StreamClock, ATaskMayWaitForSeveral) {
  const std::vector<int> resources{0, 0, 1};
  EXPECT_DOUBLE_EQ(end_of({task(0, 2), task(1, 1), task(2, 4, {0, 1})}, resources), 7);
  EXPECT_DOUBLE_EQ(end_of({task(0, 2), task(1, 1), task(2, 4, {1})}, resources), 6) << "1 is done at 2";
}

// Who schedules asks between two tasks, and goes on.
TEST(StreamClock, TellsTimesAsTasksAreAdded) {
  StreamClock clock(kApart);
  int computed = clock.add(task(0, 2)), sent = clock.add(task(1, 3, {computed}, 0.5));
  EXPECT_EQ(clock.now(), 0);
  EXPECT_DOUBLE_EQ(clock.end_of(sent), 5) << "ahead of the clock";
  EXPECT_EQ(clock.now(), 0) << "which does not move";
  clock.run_until_idle(0);
  EXPECT_DOUBLE_EQ(clock.now(), 2);
  EXPECT_DOUBLE_EQ(clock.end_of(computed), 2);
  clock.add(task(0, 1));
  clock.run_until_idle(0);
  EXPECT_DOUBLE_EQ(clock.now(), 4) << "at half the rate, beside what is sent";
  EXPECT_DOUBLE_EQ(clock.end_of(sent), 5);
  EXPECT_DOUBLE_EQ(clock.end_of(clock.add(task(0, 1, {sent}))), 6);
}

}  // namespace
}  // namespace tokamak
