#include "plan/print_plan.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(FormatCollectives, CountsEqualOnesInALine) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[256]
    %1 = all_reduce(%0) {axis="data", reduction="sum", size=4} : f32[256]
    %2 = all_reduce(%1) {axis="data", reduction="sum", size=4} : f32[256]
    %3 = all_gather(%2) {axis="tensor", dims=[0], size=2} : f32[512]
    result y = %3
  })");
  Target target;
  target.link_bandwidth = 1536e3;  // 1.5 KiB of an all_reduce: 1 ms
  target.link_seconds = 1e-3;
  EXPECT_EQ(format_collectives(make_plan(std::move(graph), {target})),
            "collective       axis       output                 count         sent predict. ms\n"
            "all_gather       tensor:2   f32[512]                   1     1.00 KiB       1.667\n"
            "all_reduce       data:4     f32[256]                   2     3.00 KiB       4.000\n"
            "total                                                  3     4.00 KiB       5.667\n");
}

TEST(FormatCollectives, SaysNothingOfOneRank) {
  Graph graph = test::parse("graph g { input x = %0 : f32[4] %1 = add(%0, %0) : f32[4] result y = %1 }");
  EXPECT_EQ(format_collectives(make_plan(std::move(graph), {})), "");
}

}  // namespace
}  // namespace tokamak
