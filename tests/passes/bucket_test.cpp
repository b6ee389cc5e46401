#include "passes/bucket.h"

#include "ops/collective.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::canonical;
using test::parse;

constexpr int64_t kLarge = 1 << 20;

// What the graph becomes with buckets of so many bytes.
std::string bucketed(std::string_view text, int64_t bytes = kLarge, int64_t gathered_bytes = kLarge,
                     int64_t ahead_bytes = kLarge) {
  Graph graph = parse(text);
  bool changed = bucket_graph(graph, {bytes, gathered_bytes, ahead_bytes});
  verify(graph);
  EXPECT_EQ(changed, print(graph) != canonical(text));
  return print(graph);
}

constexpr std::string_view kGradients = R"(graph g {
  input x = %0 : f32[8]
  param w = %1 : f32[8]
  %2 = mul(%0, %1) #backward : f32[8]
  %3 = all_reduce(%2) {axis="data", reduction="sum", size=2} #backward : f32[8]
  %4 = mul(%0, %2) #backward : f32[8]
  %5 = reduce_sum(%4) {dims=[0], keep=false} #backward : f32[]
  %6 = all_reduce(%5) {axis="data", reduction="sum", size=2} #backward : f32[]
  %7 = mul(%0, %4) #backward : f32[8]
  %8 = all_reduce(%7) {axis="data", reduction="sum", size=2} #backward : f32[8]
  %9 = mul(%7, %0) #backward : f32[8]
  %10 = add(%3, %6) #update : f32[8]
  %11 = add(%10, %8) #update : f32[8]
  %12 = add(%11, %9) #update : f32[8]
  update %1 = %12
})";

TEST(Bucket, GradientsGoWithTheLastOfThem) {
  EXPECT_EQ(bucketed(kGradients), canonical(R"(graph g {
    input x = %0 : f32[8]
    param w = %1 : f32[8]
    %2 = mul(%0, %1) #backward : f32[8]
    %3 = mul(%0, %2) #backward : f32[8]
    %4 = reduce_sum(%3) {dims=[0], keep=false} #backward : f32[]
    %5 = mul(%0, %3) #backward : f32[8]
    %6, %7, %8 = all_reduce(%2, %4, %5) {axis="data", reduction="sum", size=2} #backward : f32[8], f32[], f32[8]
    %9 = mul(%5, %0) #backward : f32[8]
    %10 = add(%6, %7) #update : f32[8]
    %11 = add(%10, %8) #update : f32[8]
    %12 = add(%11, %9) #update : f32[8]
    update %1 = %12
  })"));
}

TEST(Bucket, HoldsSoManyBytesAndLeavesAloneWhatIsLarger) {
  auto sizes = [](int64_t bytes) {
    std::vector<size_t> sizes;
    Graph graph = parse(bucketed(kGradients, bytes));
    for (const Node& node : graph.nodes())
      if (node.op == &op::all_reduce) sizes.push_back(node.inputs.size());
    return sizes;
  };
  EXPECT_EQ(sizes(68), (std::vector<size_t>{3}));
  EXPECT_EQ(sizes(67), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(sizes(35), (std::vector<size_t>{1, 1, 1}));
}

// What comes before a large gradient is sent while that is computed, and does not wait for what comes behind it.
TEST(Bucket, IsClosedByAGradientThatIsLargerThanABucket) {
  constexpr std::string_view kSmallLargeSmall = R"(graph g {
    input x = %0 : f32[8]
    input s = %1 : bf16[2]
    %2 = all_reduce(%1) {axis="data", reduction="sum", size=2} #backward : bf16[2]
    %3 = all_reduce(%0) {axis="data", reduction="sum", size=2} #backward : f32[8]
    %4 = mul(%1, %1) #backward : bf16[2]
    %5 = all_reduce(%4) {axis="data", reduction="sum", size=2} #backward : bf16[2]
    result a = %2
    result b = %3
    result c = %5
  })";
  EXPECT_EQ(bucketed(kSmallLargeSmall, 16), canonical(kSmallLargeSmall));
}

TEST(Bucket, IsClosedByWhatReadsIt) {
  constexpr std::string_view kChain = R"(graph g {
    input x = %0 : f32[8]
    %1 = all_reduce(%0) {axis="data", reduction="sum", size=2} #backward : f32[8]
    %2 = mul(%1, %0) #backward : f32[8]
    %3 = all_reduce(%2) {axis="data", reduction="sum", size=2} #backward : f32[8]
    result y = %3
  })";
  EXPECT_EQ(bucketed(kChain), canonical(kChain));
}

TEST(Bucket, IsNotClosedByAViewButByWhatReadsThat) {
  constexpr std::string_view kViews = R"(graph g {
    input x = %0 : f32[1,8]
    %1 = all_reduce(%0) {axis="data", reduction="sum", size=2} #backward : f32[1,8]
    %2 = reshape(%1) {shape=[8]} #backward : f32[8]
    %3 = mul(%0, %0) #backward : f32[1,8]
    %4 = all_reduce(%3) {axis="data", reduction="sum", size=2} #backward : f32[1,8]
    %5 = add(%2, %2) #backward : f32[8]
    %6 = all_reduce(%3) {axis="data", reduction="sum", size=2} #backward : f32[1,8]
    result y = %4
    result z = %5
    result w = %6
  })";
  EXPECT_EQ(bucketed(kViews), canonical(R"(graph g {
    input x = %0 : f32[1,8]
    %1 = mul(%0, %0) #backward : f32[1,8]
    %2, %3 = all_reduce(%0, %1) {axis="data", reduction="sum", size=2} #backward : f32[1,8], f32[1,8]
    %4 = reshape(%2) {shape=[8]} #backward : f32[8]
    %5 = add(%4, %4) #backward : f32[8]
    %6 = all_reduce(%1) {axis="data", reduction="sum", size=2} #backward : f32[1,8]
    result y = %3
    result z = %5
    result w = %6
  })"));
}

// Of another axis, reduction, op, type or phase.
TEST(Bucket, JoinsOneKindOnly) {
  constexpr std::string_view kKinds = R"(graph g {
    input x = %0 : f32[8]
    input l = %1 : bf16[8]
    %2 = all_reduce(%0) {axis="data", reduction="sum", size=2} #backward : f32[8]
    %3 = all_reduce(%0) {axis="tensor", reduction="sum", size=2} #backward : f32[8]
    %4 = all_reduce(%0) {axis="data", reduction="max", size=2} #backward : f32[8]
    %5 = reduce_scatter(%0) {axis="data", dims=[0], size=2} #backward : f32[4]
    %6 = all_reduce(%1) {axis="data", reduction="sum", size=2} #backward : bf16[8]
    %7 = all_reduce(%0) {axis="data", reduction="sum", size=2} #update : f32[8]
    result a = %2
    result b = %3
    result c = %4
    result d = %5
    result e = %6
    result f = %7
  })";
  EXPECT_EQ(bucketed(kKinds), canonical(kKinds));
}

TEST(Bucket, CutsEachTensorAsItWas) {
  EXPECT_EQ(bucketed(R"(graph g {
    input x = %0 : f32[8,12]
    %1 = reduce_scatter(%0) {axis="data", dims=[0], size=2} #backward : f32[4,12]
    %2 = reduce_scatter(%0) {axis="data", blocks=[3], dims=[1], size=2} #backward : f32[8,6]
    result a = %1
    result b = %2
  })"),
            canonical(R"(graph g {
    input x = %0 : f32[8,12]
    %1, %2 = reduce_scatter(%0, %0) {axis="data", blocks=[1,3], dims=[0,1], size=2} #backward : f32[4,12], f32[8,6]
    result a = %1
    result b = %2
  })"));
}

// With three parameters that are cut.
std::string of_parameters(std::string_view nodes) {
  return R"(graph g {
  param a = %0 {cuts="data:2@0", global=[8]} : f32[4]
  param b = %1 {cuts="data:2@0", global=[8]} : f32[4]
  param c = %2 {cuts="data:2@0", global=[8]} : f32[4]
  input x = %3 : bf16[8]
)" + std::string(nodes) +
         "}";
}

// The low copy of each is gathered where it is read, and another reads them all again.
const std::string kGathers = of_parameters(R"(
  %4 = cast(%0) {to="bf16"} : bf16[4]
  %5 = all_gather(%4) {axis="data", dims=[0], size=2} : bf16[8]
  %6 = mul(%3, %5) : bf16[8]
  %7 = cast(%1) {to="bf16"} : bf16[4]
  %8 = all_gather(%7) {axis="data", dims=[0], size=2} : bf16[8]
  %9 = mul(%6, %8) : bf16[8]
  %10 = cast(%2) {to="bf16"} : bf16[4]
  %11 = all_gather(%10) {axis="data", dims=[0], size=2} : bf16[8]
  %12 = mul(%9, %11) : bf16[8]
  result y = %12
)");

TEST(Bucket, ParametersAreGatheredOneBucketAhead) {
  EXPECT_EQ(bucketed(kGathers, kLarge, 16), canonical(of_parameters(R"(
    %4 = cast(%0) {to="bf16"} : bf16[4]
    %5 = all_gather(%4) {axis="data", dims=[0], size=2} : bf16[8]
    %6 = cast(%1) {to="bf16"} : bf16[4]
    %7 = all_gather(%6) {axis="data", dims=[0], size=2} : bf16[8]
    %8 = mul(%3, %5) : bf16[8]
    %9 = cast(%2) {to="bf16"} : bf16[4]
    %10 = all_gather(%9) {axis="data", dims=[0], size=2} : bf16[8]
    %11 = mul(%8, %7) : bf16[8]
    %12 = mul(%11, %10) : bf16[8]
    result y = %12
  )")));
}

TEST(Bucket, ParametersAreGatheredTogether) {
  EXPECT_EQ(bucketed(kGathers, kLarge, 32), canonical(of_parameters(R"(
    %4 = cast(%0) {to="bf16"} : bf16[4]
    %5 = cast(%1) {to="bf16"} : bf16[4]
    %6, %7 = all_gather(%4, %5) {axis="data", dims=[0,0], size=2} : bf16[8], bf16[8]
    %8 = cast(%2) {to="bf16"} : bf16[4]
    %9 = all_gather(%8) {axis="data", dims=[0], size=2} : bf16[8]
    %10 = mul(%3, %6) : bf16[8]
    %11 = mul(%10, %7) : bf16[8]
    %12 = mul(%11, %9) : bf16[8]
    result y = %12
  )")));
}

TEST(Bucket, WhatIsLargerThanABucketGoesByItselfButAheadAsWell) {
  EXPECT_EQ(bucketed(kGathers, kLarge, 15), bucketed(kGathers, kLarge, 16));
}

// The first that the backward pass reads goes ahead of what the forward pass reads last, in a bucket of its own.
TEST(Bucket, ParametersOfTheNextPhaseAreGatheredAhead) {
  EXPECT_EQ(bucketed(of_parameters(R"(
    %4 = all_gather(%0) {axis="data", dims=[0], size=2} : f32[8]
    %5 = mul(%4, %4) : f32[8]
    %6 = all_gather(%1) {axis="data", dims=[0], size=2} #backward : f32[8]
    %7 = mul(%5, %6) #backward : f32[8]
    result y = %7
  )")),
            canonical(of_parameters(R"(
    %4 = all_gather(%0) {axis="data", dims=[0], size=2} : f32[8]
    %5 = all_gather(%1) {axis="data", dims=[0], size=2} #backward : f32[8]
    %6 = mul(%4, %4) : f32[8]
    %7 = mul(%6, %5) #backward : f32[8]
    result y = %7
  )")));
}

TEST(Bucket, WhatIsTooLargeToGoAheadIsGatheredWhereItIsRead) {
  EXPECT_EQ(bucketed(kGathers, kLarge, 15, 15), canonical(kGathers));
}

TEST(Bucket, WithoutBucketsNothingGoesAhead) {
  Graph graph = parse(kGathers);
  EXPECT_FALSE(bucket(graph, {}));
}

// Over data, then context: one bucket for each, in that order.
TEST(Bucket, GathersOverSeveralAxesInTheirOrder) {
  constexpr std::string_view kTwoAxes = R"(graph g {
    param a = %0 {cuts="data:2@0 context:2@0x2", global=[8]} : f32[2]
    param b = %1 {cuts="data:2@0 context:2@0x2", global=[8]} : f32[2]
    input x = %2 : f32[8]
    %3 = all_gather(%0) {axis="context", dims=[0], size=2} : f32[4]
    %4 = all_gather(%3) {axis="data", dims=[0], size=2} : f32[8]
    %5 = mul(%2, %4) : f32[8]
    %6 = all_gather(%1) {axis="context", dims=[0], size=2} : f32[4]
    %7 = all_gather(%6) {axis="data", dims=[0], size=2} : f32[8]
    %8 = mul(%5, %7) : f32[8]
    result y = %8
  })";
  EXPECT_EQ(bucketed(kTwoAxes), canonical(R"(graph g {
    param a = %0 {cuts="data:2@0 context:2@0x2", global=[8]} : f32[2]
    param b = %1 {cuts="data:2@0 context:2@0x2", global=[8]} : f32[2]
    input x = %2 : f32[8]
    %3, %4 = all_gather(%0, %1) {axis="context", dims=[0,0], size=2} : f32[4], f32[4]
    %5, %6 = all_gather(%3, %4) {axis="data", dims=[0,0], size=2} : f32[8], f32[8]
    %7 = mul(%2, %5) : f32[8]
    %8 = mul(%7, %6) : f32[8]
    result y = %8
  })"));
}

TEST(Bucket, GathersAtMostASixteenthOfTheMemoryBudgetAtATime) {
  PassContext context;
  context.bucket_mib = 1;
  context.options.memory_budget_gib = 16.0 * 16 / (1 << 30);
  Graph graph = parse(kGathers);
  ASSERT_TRUE(bucket(graph, context));
  EXPECT_EQ(print(graph), bucketed(kGathers, kLarge, 16));
}

}  // namespace
}  // namespace tokamak
