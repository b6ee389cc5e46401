// Column sums that join a row group, on targets that have kernels for it.
#include "graph/builder.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/form_groups.h"
#include "passes/fuse.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

using test::count_ops;
using test::parse;

PassContext able(bool row_column = true) {
  PassContext context;
  context.target.row_column_groups = row_column;
  return context;
}

Graph fused(const Graph& before, const PassContext& context = able()) {
  Graph after = before;
  form_groups(after, context);
  fuse(after, context);
  verify(after);
  EXPECT_EQ(print(parse(print(after))), print(after));
  test::expect_same_meaning(before, after, 1e-12);
  return after;
}

// The softmax of x is read by a matmul; s sums `summed` over the rows.
std::string softmax_text(const std::string& summed, const std::string& more = "") {
  return fmt::format(R"(graph g {{
    input x = %0 : f32[4,3]
    %1 = softmax(%0) : f32[4,3]
    %2 = mul(%0, %0) : f32[4,3]
    %3 = reduce_sum({}) {{dims=[0], keep=false}} : f32[3]
    %4 = matmul(%1, %1) {{trans_a=false, trans_b=true}} : f32[4,4]
    {}
    result y = %4
    result s = %3
  }})",
                     summed, more);
}

TEST(FuseColumns, SumOfWhatTheRowGroupReads) {
  Graph after = fused(parse(softmax_text("%2")));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[4,3]
    %1, %2 = row(%0) : f32[4,3], f32[3] {
      graph body {
        input a0 = %0 : f32[4,3]
        %1 = reduce_max(%0) {dims=[1], keep=true} : f32[4,1]
        %2 = sub(%0, %1) : f32[4,3]
        %3 = exp(%2) : f32[4,3]
        %4 = reduce_sum(%3) {dims=[1], keep=true} : f32[4,1]
        %5 = constant() {dtype="f32", shape=[1,1], value=1.0} : f32[1,1]
        %6 = div(%5, %4) : f32[4,1]
        %7 = mul(%3, %6) : f32[4,3]
        %8 = mul(%0, %0) : f32[4,3]
        %9 = reduce_sum(%8) {dims=[0], keep=true} : f32[1,3]
        %10 = reshape(%9) {shape=[3]} : f32[3]
        result r0 = %7
        result r1 = %10
      }
    }
    %3 = matmul(%1, %1) {trans_a=false, trans_b=true} : f32[4,4]
    result y = %3
    result s = %2
  })"));
}

TEST(FuseColumns, SumOfWhatTheRowGroupMakes) {
  Graph after = fused(parse(softmax_text("%1")));
  EXPECT_EQ(count_ops(after, "row"), 1) << print(after);
  EXPECT_EQ(count_ops(after, "column"), 0);
}

// Without stages the group that makes the stream's gradient, a row group, would add it up.
TEST(FuseColumns, WhatAnotherStageMadeIsAddedUpAsARowGroupWould) {
  auto text = [](const std::string& role) {
    return fmt::format(R"(graph g {{
      state s = %0 {{role="{}"}} : f32[4,3]
      %1 = reduce_sum(%0) {{dims=[0], keep=false}} : f32[3]
      result y = %1
    }})",
                       role);
  };
  EXPECT_EQ(count_ops(fused(parse(text("residual"))), "row"), 1);
  EXPECT_EQ(count_ops(fused(parse(text("residual")), able(false)), "column"), 1);
  EXPECT_EQ(count_ops(fused(parse(text("activation"))), "column"), 1);
}

TEST(FuseColumns, OnlyWhereTheTargetHasIt) {
  Graph after = fused(parse(softmax_text("%1")), able(false));
  EXPECT_EQ(count_ops(after, "row"), 1);
  EXPECT_EQ(count_ops(after, "column"), 1);
}

// Text of a graph in which a column group must stay one.
void expect_apart(const std::string& text) {
  Graph after = fused(parse(text));
  EXPECT_EQ(count_ops(after, "column"), 1) << print(after);
  EXPECT_EQ(count_ops(after, "row"), 1) << print(after);
}

TEST(FuseColumns, NotWhereTheRowGroupReadsTheSum) {
  expect_apart(R"(graph g {
    input x = %0 : f32[4,3]
    %1 = reduce_sum(%0) {dims=[0], keep=true} : f32[1,3]
    %2 = sub(%0, %1) : f32[4,3]
    %3 = softmax(%2) : f32[4,3]
    result y = %3
  })");
}

TEST(FuseColumns, NotThroughAnotherNode) {
  expect_apart(R"(graph g {
    input x = %0 : f32[3,3]
    %1 = softmax(%0) : f32[3,3]
    %2 = matmul(%1, %0) {trans_a=false, trans_b=false} : f32[3,3]
    %3 = mul(%0, %2) : f32[3,3]
    %4 = reduce_sum(%3) {dims=[0], keep=false} : f32[3]
    result y = %1
    result s = %4
  })");
}

TEST(FuseColumns, NotMaximaNorOtherMatricesNorWideOnes) {
  expect_apart(R"(graph g {
    input x = %0 : f32[4,3]
    %1 = softmax(%0) : f32[4,3]
    %2 = reduce_max(%0) {dims=[0], keep=false} : f32[3]
    result y = %1
    result s = %2
  })");
  expect_apart(R"(graph g {
    input x = %0 : f32[4,3]
    %1 = softmax(%0) : f32[4,3]
    %2 = reshape(%0) {shape=[2,6]} : f32[2,6]
    %3 = reduce_sum(%2) {dims=[0], keep=false} : f32[6]
    result y = %1
    result s = %3
  })");
  expect_apart(R"(graph g {
    input x = %0 : f32[2,8200]
    %1 = softmax(%0) : f32[2,8200]
    %2 = reduce_sum(%0) {dims=[0], keep=false} : f32[8200]
    result y = %1
    result s = %2
  })");
}

TEST(FuseColumns, NotWhatStandsFarAway) {
  std::string text = "graph g {\n input x = %0 : f32[4,3]\n input w = %1 : f32[3,3]\n %2 = softmax(%0) : f32[4,3]\n";
  int last = 2;
  for (; last < 32; ++last)
    text += fmt::format(" %{} = matmul(%{}, %1) {{trans_a=false, trans_b=false}} : f32[4,3]\n", last + 1, last);
  text += fmt::format(" %{} = reduce_sum(%0) {{dims=[0], keep=false}} : f32[3]\n result y = %{}\n result s = %{}\n}}",
                      last + 1, last, last + 1);
  expect_apart(text);
}

// The backward pass around one norm: its gradient, those of gain and bias, and the bias gradient of what comes before
// read every matrix once.
TEST(FuseColumns, BackwardOfANormIsOneGroup) {
  Graph before = parse(R"(graph g {
    input dy = %0 : bf16[2,3,8]
    input x = %1 : bf16[2,3,8]
    input gain = %2 : f32[8]
    input mean = %3 : f32[2,3,1]
    input rstd_positive = %4 : f32[2,3,1]
    input residual = %5 : bf16[2,3,8]
    input w = %6 : bf16[8,8]
    %7 = layer_norm_grad(%0, %1, %2, %3, %4) : bf16[2,3,8]
    %8, %9 = layer_norm_grad_params(%0, %1, %3, %4) : f32[8], f32[8]
    %10 = add(%5, %7) : bf16[2,3,8]
    %11 = matmul(%10, %6) {trans_a=false, trans_b=true} : bf16[2,3,8]
    %12 = cast(%10) {to="f32"} : f32[2,3,8]
    %13 = reduce_sum(%12) {dims=[0,1], keep=false} : f32[8]
    result dx = %11
    result dgain = %8
    result dbias = %9
    result db = %13
  })");
  Graph after = fused(before);
  EXPECT_EQ(after.nodes().size(), 2u) << print(after);
  EXPECT_EQ(count_ops(after, "row"), 1);
  EXPECT_EQ(after.nodes()[0].outputs.size(), 4u);
}

TEST(FuseColumns, RandomGraphsKeepTheirMeaning) {
  int joined = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    uint64_t count = 0;
    auto pick = [&](size_t below) { return size_t(philox4x32(seed, count++)[0] % below); };
    Graph graph("random");
    GraphBuilder g(graph);
    ValueIds values{g.input("x", {DType::kF32, {4, 3}}), g.input("y", {DType::kF32, {4, 3}})}, sums;
    ValueId w = g.input("w", {DType::kF32, {3, 3}});
    for (int n = 0; n < 12; ++n) {
      ValueId a = values[pick(values.size())], b = values[pick(values.size())];
      switch (pick(7)) {
        case 0: values.push_back(mul(g, a, b)); break;
        case 1: values.push_back(tanh(g, a)); break;
        case 2:
        case 3: values.push_back(softmax(g, a)); break;
        case 4: sums.push_back(reduce_sum(g, a, {0}, pick(2) == 0)); break;
        case 5: values.push_back(matmul(g, a, w)); break;
        case 6:
          sums.empty() ? sums.push_back(reduce_sum(g, mul(g, a, b), {0}, true))
                       : values.push_back(sub(g, a, sums[pick(sums.size())]));
          break;
      }
    }
    for (ValueId sum : sums) graph.add_result("s" + std::to_string(sum), sum);
    for (size_t i = 0; i < values.size(); i += 3)
      graph.add_result("y" + std::to_string(i), values[values.size() - 1 - i]);
    Graph after = fused(graph);
    joined += count_ops(after, "column") < count_ops(fused(graph, able(false)), "column");
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed << "\n" << print(graph) << print(after);
      return;
    }
  }
  EXPECT_GT(joined, 100);
}

}  // namespace
}  // namespace tokamak
