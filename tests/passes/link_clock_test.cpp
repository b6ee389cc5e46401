#include "passes/link_clock.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(LinkClock, AProductWaitsForWhatItReads) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[64,64]
    param w = %1 : f32[64,64]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[64,64]
    %3 = all_gather(%2) {axis="tensor", dims=[0], size=2} : f32[128,64]
    %4 = matmul(%3, %1) {trans_a=false, trans_b=false} : f32[128,64]
    result y = %4
  })");
  PassContext context;
  context.target.f32_flops = 1e9;
  context.target.link_bandwidth = 1e6;
  LinkClock clock(graph, context);
  clock.take(0);
  double first = clock.now();
  EXPECT_DOUBLE_EQ(first, 2.0 * 64 * 64 * 64 / 1e9);
  clock.take(1);
  EXPECT_DOUBLE_EQ(clock.now(), first) << "others compute meanwhile";
  double there = first + 64 * 64 * 4 / 1e6;
  EXPECT_DOUBLE_EQ(clock.ready_at(2), there);
  clock.take(2);
  EXPECT_DOUBLE_EQ(clock.now(), there + 2 * first);
}

}  // namespace
}  // namespace tokamak
