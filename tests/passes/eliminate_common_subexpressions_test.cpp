#include "passes/eliminate_common_subexpressions.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

TEST(MergeDuplicates, MergesEqualNodesAndWhatTheyLeadTo) {
  Graph before = parse(R"(graph g {
    input x = %0 : f32[2]
    input y = %1 : f32[2]
    %2 = add(%0, %1) : f32[2]
    %3 = add(%0, %1) : f32[2]
    %4 = exp(%2) : f32[2]
    %5 = exp(%3) : f32[2]
    %6 = mul(%4, %5) : f32[2]
    result z = %6
  })");
  Graph after = before;
  EXPECT_TRUE(eliminate_common_subexpressions(after, {}));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2]
    input y = %1 : f32[2]
    %2 = add(%0, %1) : f32[2]
    %3 = exp(%2) : f32[2]
    %4 = mul(%3, %3) : f32[2]
    result z = %4
  })"));
  test::expect_same_meaning(before, after);
}

TEST(MergeDuplicates, LeavesOtherInputsAttributesAndRecomputation) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2]
    input y = %1 : f32[2]
    input rng = %2 : i32[2]
    %3 = sub(%0, %1) : f32[2]
    %4 = sub(%1, %0) : f32[2]
    %5 = dropout(%0, %2) {p=0.5, stream=1} : f32[2]
    %6 = dropout(%0, %2) {p=0.5, stream=2} : f32[2]
    %7 = exp(%0) : f32[2]
    %8 = exp(%0) #backward #recompute : f32[2]
    result a = %3
    result b = %4
    result c = %5
    result d = %6
    result e = %7
    result f = %8
  })");
  EXPECT_FALSE(eliminate_common_subexpressions(graph, {}));
}

}  // namespace
}  // namespace tokamak
