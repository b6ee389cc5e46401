#include "passes/gather_low.h"

#include "tests/support/graph_text.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::canonical;
using test::parse;

TEST(GatherLow, GathersTheCopyThatIsRead) {
  Graph graph = parse(R"(graph g {
    param w = %0 {cuts="data:2@0 context:2@0x2", global=[8,4]} : f32[2,4]
    %1 = all_gather(%0) {axis="context", blocks=[1], dims=[0], size=2} : f32[4,4]
    %2 = all_gather(%1) {axis="data", dims=[0], size=2} : f32[8,4]
    %3 = cast(%2) {to="bf16"} : bf16[8,4]
    %4 = cast(%2) {to="bf16"} : bf16[8,4]
    result a = %3
    result b = %4
  })");
  ASSERT_TRUE(gather_low(graph, {}));
  EXPECT_EQ(print(graph), canonical(R"(graph g {
    param w = %0 {cuts="data:2@0 context:2@0x2", global=[8,4]} : f32[2,4]
    %1 = cast(%0) {to="bf16"} : bf16[2,4]
    %2 = all_gather(%1) {axis="context", blocks=[1], dims=[0], size=2} : bf16[4,4]
    %3 = all_gather(%2) {axis="data", dims=[0], size=2} : bf16[8,4]
    result a = %3
    result b = %3
  })"));
}

TEST(GatherLow, LeavesWhatIsReadInF32) {
  for (const char* reader : {"%2 = add(%1, %1) : f32[8] result r = %2", "result r = %1",
                             "%2 = cast(%1) {to=\"f16\"} : f16[8] result r = %2 result s = %1",
                             "%2 = cast(%1) {to=\"f16\"} : f16[8] %3 = cast(%1) {to=\"bf16\"} : bf16[8] "
                             "result r = %2 result s = %3"}) {
    Graph graph = parse(fmt::format(R"(graph g {{
      param w = %0 {{cuts="data:2@0", global=[8]}} : f32[4]
      %1 = all_gather(%0) {{axis="data", dims=[0], size=2}} : f32[8]
      {}
    }})",
                                    reader));
    EXPECT_FALSE(gather_low(graph, {})) << reader;
  }
}

}  // namespace
}  // namespace tokamak
