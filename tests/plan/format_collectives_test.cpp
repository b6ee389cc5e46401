#include "plan/print_plan.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(FormatCollectives, SumsByOpAndAxis) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[256]
    %1 = all_reduce(%0) {axis="data", reduction="sum", size=4} : f32[256]
    %2, %3 = all_reduce(%0, %1) {axis="data", reduction="sum", size=4} : f32[256], f32[256]
    %4 = all_gather(%2) {axis="tensor", dims=[0], size=2} : f32[512]
    result y = %3
    result z = %4
  })");
  Target target;
  target.link_bandwidth = 1536e3;  // 1.5 KiB of an all_reduce: 1 ms
  target.link_seconds = 1e-3;
  EXPECT_EQ(format_collectives(make_plan(std::move(graph), {target})),
            "collective      axis        count tensors         sent         ms  hidden ms exposed ms\n"
            "all_gather      tensor:2        1       1     1.00 KiB      1.667      0.000      1.667\n"
            "all_reduce      data:4          2       3     4.50 KiB      5.000      0.000      5.000\n"
            "total                           3       4     5.50 KiB      6.667      0.000      6.667\n"
            "predicted 6.667 ms, of which 100.0% are exposed communication\n");
}

TEST(FormatCollectives, SaysNothingOfOneRank) {
  Graph graph = test::parse("graph g { input x = %0 : f32[4] %1 = add(%0, %0) : f32[4] result y = %1 }");
  EXPECT_EQ(format_collectives(make_plan(std::move(graph), {})), "");
}

}  // namespace
}  // namespace tokamak
