#include "plan/communication.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Nodes 1, 2 and 4 are collectives.
Plan plan() {
  Plan plan;
  plan.graph = test::parse(R"(graph g {
    input x = %0 : f32[4]
    %1 = exp(%0) : f32[4]
    %2 = all_reduce(%1) {axis="data", reduction="sum", size=2} : f32[4]
    %3, %4 = all_reduce(%1, %2) {axis="data", reduction="sum", size=2} : f32[4], f32[4]
    %5 = exp(%1) : f32[4]
    %6 = all_gather(%5) {axis="tensor", dims=[0], size=2} : f32[8]
    result a = %3
    result b = %4
    result c = %6
  })");
  for (int node = 0; node < 5; ++node) plan.launches.push_back({{.cost = {.link_bytes = 10}}, node});
  return plan;
}

// Others run from 0 to 2 and from 5 to 7.
const std::vector<Span> kTimeline = {{0, 2}, {1, 3}, {3, 6}, {5, 7}, {7, 11}};

TEST(Communication, IsExposedWhereNothingElseRuns) {
  EXPECT_EQ(exposed_seconds(plan(), kTimeline), (std::vector<double>{0, 1, 2, 0, 4}));
}

TEST(Communication, OfWhatIsCoveredByTwoIsNotCountedTwice) {
  Plan two = plan();
  EXPECT_EQ(exposed_seconds(two, {{0, 4}, {1, 6}, {6, 6}, {2, 3}, {6, 6}})[1], 2);
}

TEST(Communication, IsSummedByOpAndAxis) {
  std::vector<Communication> sums = sum_communication(plan(), kTimeline);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].op, "all_gather");
  EXPECT_EQ(axis_label(sums[0]), "tensor:2");
  EXPECT_EQ(axis_label(sums[1]), "data:2");
  EXPECT_EQ(sums[1].collectives, 2);
  EXPECT_EQ(sums[1].tensors, 3);
  EXPECT_EQ(sums[1].link_bytes, 20);
  EXPECT_EQ(sums[1].seconds, 5);
  EXPECT_EQ(sums[1].exposed, 3);
}

}  // namespace
}  // namespace tokamak
