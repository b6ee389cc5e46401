#include "plan/timeline.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// A plan of launches alone; what they launch does not matter here.
Launch launch(int stream, double seconds, std::vector<int> after = {}, double taken_share = 0) {
  Launch launch;
  launch.seconds = seconds, launch.taken_share = taken_share;
  launch.stream = stream;
  launch.after = std::move(after);
  return launch;
}

// The clock's own tests are tests/cost/stream_clock_test.cpp.
TEST(Timeline, RunsThePlansLaunchesOnItsStreams) {
  Plan plan;
  plan.streams = {{"compute"}, {.name = "link", .resource = 1}, {"side"}};
  plan.launches = {launch(0, 2), launch(1, 4, {0}, 0.5), launch(0, 1), launch(2, 1), launch(0, 1, {1})};
  std::vector<std::pair<double, double>> times;
  std::vector<Span> timeline = simulate(plan);
  for (const Span& span : timeline) times.emplace_back(span.begin, span.end);
  EXPECT_EQ(times, (std::vector<std::pair<double, double>>{{0, 3}, {3, 7}, {3, 5}, {0, 2}, {7, 8}}));
  EXPECT_EQ(end_of_timeline(timeline), 8);
}

}  // namespace
}  // namespace tokamak
