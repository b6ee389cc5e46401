#include "passes/merge_adds.h"

#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::canonical;
using test::parse;

void expect_becomes(const std::string& text, const std::string& merged) {
  Graph before = parse(text), after = before;
  EXPECT_TRUE(merge_adds(after, {}));
  verify(after);
  EXPECT_EQ(print(after), canonical(merged));
  test::expect_same_meaning(before, after);
}

void expect_unchanged(const std::string& text) {
  Graph graph = parse(text);
  EXPECT_FALSE(merge_adds(graph, {}));
  EXPECT_EQ(print(graph), canonical(text));
}

// As the sums over slots are added up, whichever term stands first; sums of two states and of three apart.
TEST(MergeAdds, AddsUpStatesInOneKernel) {
  std::string states = R"(graph g {
    state a = %0 : f32[2,3]
    state b = %1 : f32[2,3]
    state c = %2 : f32[2,3]
    state d = %3 : f32[]
    state e = %4 : f32[]
    state f = %5 : f32[]
  )";
  expect_becomes(states + R"(
    %6 = add(%1, %0) : f32[2,3]
    %7 = add(%2, %6) : f32[2,3]
    %8 = add(%4, %3) : f32[]
    %9 = add(%8, %5) : f32[]
    %10 = add(%0, %2) : f32[2,3]
    %11 = sum_squares(%7) {pieces=1} : f32[1,1]
    result y = %10
    result z = %11
    update %0 = %7
    update %5 = %9
  })",
                 states + R"(
    %6 = add(%1, %0) : f32[2,3]
    %7, %8 = multi_add(%1, %4, %0, %3, %2, %5) {terms=3} : f32[2,3], f32[]
    %9 = add(%4, %3) : f32[]
    %10 = add(%0, %2) : f32[2,3]
    %11 = sum_squares(%7) {pieces=1} : f32[1,1]
    result y = %10
    result z = %11
    update %0 = %7
    update %5 = %8
  })");
}

// As a micro-batch adds its gradients: vectors when the last of them is there; the matrix stays with its matmul.
TEST(MergeAdds, AddsVectorsOntoStatesInOneKernel) {
  std::string begin = R"(graph g {
    input x = %0 : f32[4,4]
    state a = %1 : f32[4]
    state b = %2 : f32[4]
    state c = %3 : f32[4,4]
    %4 = reduce_sum(%0) {dims=[0], keep=false} : f32[4]
  )";
  expect_becomes(begin + R"(
    %5 = add(%1, %4) #update : f32[4]
    %6 = matmul(%0, %0) {trans_a=false, trans_b=false} : f32[4,4]
    %7 = add(%3, %6) #update : f32[4,4]
    %8 = reduce_sum(%6) {dims=[1], keep=false} : f32[4]
    %9 = add(%8, %2) #update : f32[4]
    update %1 = %5
    update %2 = %9
    update %3 = %7
  })",
                 begin + R"(
    %5 = matmul(%0, %0) {trans_a=false, trans_b=false} : f32[4,4]
    %6 = add(%3, %5) #update : f32[4,4]
    %7 = reduce_sum(%5) {dims=[1], keep=false} : f32[4]
    %8, %9 = multi_add(%1, %2, %4, %7) {terms=2} #update : f32[4], f32[4]
    update %1 = %8
    update %2 = %9
    update %3 = %6
  })");
}

// Each collective's sums by themselves.
TEST(MergeAdds, DoesNotMakeCollectivesWait) {
  Graph graph = parse(R"(graph g {
    state a = %0 : f32[4]
    state b = %1 : f32[4]
    %2 = add(%0, %1) : f32[4]
    %3 = add(%1, %0) : f32[4]
    %4, %5 = all_reduce(%2, %3) {axis="data", reduction="sum", size=2} : f32[4], f32[4]
    %6 = add(%0, %1) : f32[4]
    %7 = add(%1, %0) : f32[4]
    %8, %9 = all_reduce(%6, %7) {axis="data", reduction="sum", size=2} : f32[4], f32[4]
    result a = %4
    result b = %5
    result c = %8
    result d = %9
  })");
  EXPECT_TRUE(merge_adds(graph, {}));
  verify(graph);
  EXPECT_EQ(test::count_ops(graph, "multi_add"), 2) << print(graph);
  EXPECT_EQ(graph.nodes()[0].outputs.size(), 2u) << print(graph);
}

// Not at the end, until when all of the product would be there. A part that is read elsewhere stays, as does a sum.
TEST(MergeAdds, AddsSlicesOntoStatesWhereTheyAreMade) {
  std::string arguments = R"(graph g {
    input x = %0 : f32[6,2]
    state a = %1 : f32[2,2]
    state b = %2 : f32[4,2]
    state c = %3 : f32[2,2]
    state d = %4 : f32[2,2]
    %5 = exp(%0) #backward : f32[6,2]
    %6 = slice(%5) {begin=0, dim=0, size=2} #backward : f32[2,2]
  )";
  std::string rest = R"(
    result part = %12
    result sum = %14
    update %1 = %9
    update %2 = %8
    update %3 = %13
    update %4 = %14
  })";
  expect_becomes(arguments + R"(
    %7 = slice(%5) {begin=2, dim=0, size=4} #backward : f32[4,2]
    %12 = slice(%5) {begin=1, dim=0, size=2} #backward : f32[2,2]
    %15 = slice(%5) {begin=3, dim=0, size=2} #backward : f32[2,2]
    %10 = exp(%5) #backward : f32[6,2]
    %9 = add(%1, %6) #update : f32[2,2]
    %8 = add(%7, %2) #update : f32[4,2]
    %13 = add(%3, %12) #update : f32[2,2]
    %14 = add(%4, %15) #update : f32[2,2]
    %16 = exp(%14) #update : f32[2,2]
    result more = %10
    result read = %16
  )" + rest,
                 arguments + R"(
    %9 = add(%1, %6) #backward : f32[2,2]
    %7 = slice(%5) {begin=2, dim=0, size=4} #backward : f32[4,2]
    %8 = add(%7, %2) #backward : f32[4,2]
    %12 = slice(%5) {begin=1, dim=0, size=2} #backward : f32[2,2]
    %15 = slice(%5) {begin=3, dim=0, size=2} #backward : f32[2,2]
    %10 = exp(%5) #backward : f32[6,2]
    %13 = add(%3, %12) #update : f32[2,2]
    %14 = add(%4, %15) #update : f32[2,2]
    %16 = exp(%14) #update : f32[2,2]
    result more = %10
    result read = %16
  )" + rest);
}

// One alone; what a reader could be fused with; what is no state, or no longer only kept; and 16 bits.
TEST(MergeAdds, LeavesOtherSumsAlone) {
  std::string states = R"(graph g {
    input x = %0 : f32[4]
    state a = %1 : f32[4]
    state b = %2 : f32[4]
    state c = %3 : bf16[4]
  )";
  expect_unchanged(states + R"(
    %4 = add(%1, %2) : f32[4]
    result y = %4
  })");
  expect_unchanged(states + R"(
    %4 = add(%1, %2) : f32[4]
    %5 = add(%2, %1) : f32[4]
    %6 = mul(%4, %5) : f32[4]
    result y = %6
  })");
  expect_unchanged(states + R"(
    %4 = add(%0, %1) : f32[4]
    %5 = add(%2, %0) : f32[4]
    %6 = sum_squares(%4, %5) : f32[]
    result y = %6
    update %1 = %4
    update %2 = %5
  })");
  expect_unchanged(states + R"(
    %4 = add(%3, %3) : bf16[4]
    %5 = add(%3, %3) : bf16[4]
    result y = %4
    result z = %5
  })");
}

}  // namespace
}  // namespace tokamak
