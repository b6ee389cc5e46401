#include "plan/timeline.h"

#include "tests/support/graph_text.h"

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

TEST(Timeline, TellsWhenTheFirstCollectiveOverAnAxisBegins) {
  Plan plan;
  plan.graph = test::parse(R"(graph g {
    param a = %0 : f32[8]
    %1 = gelu(%0) : f32[8]
    %2 = all_reduce(%1) {axis="data", reduction="sum", size=2} : f32[8]
    %3 = all_reduce(%2) {axis="pipe", reduction="sum", size=2} : f32[8]
    result r = %3
  })");
  plan.launches = {launch(0, 2), launch(0, 3), launch(0, 4)};
  for (int i = 0; i < 3; ++i) plan.launches[size_t(i)].node = i;
  EXPECT_EQ(seconds_before(plan, "data"), 2);
  EXPECT_EQ(seconds_before(plan, "pipe"), 5);
  EXPECT_EQ(seconds_before(plan, "tensor"), 9) << "there is none";
}

}  // namespace
}  // namespace tokamak
