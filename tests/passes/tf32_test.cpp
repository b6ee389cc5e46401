#include "passes/tf32.h"

#include "ops/flop_rate.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::parse;

PassContext with_units() {
  PassContext context;
  context.target.f32_flops = 1e12;
  context.target.tf32_flops = 8e12;
  context.options.precision = Precision::kTf32;
  return context;
}

TEST(Tf32, MarksMatmulsAndAttentionInF32) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[1,3,12]
    param w = %1 : f32[4,4]
    param u = %2 : bf16[4,4]
    %3, %4 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : f32[1,3,4], f32[1,2,3]
    %5 = matmul(%3, %1) {trans_a=false, trans_b=false} #backward : f32[1,3,4]
    %6 = matmul(%2, %2) {trans_a=false, trans_b=false} : bf16[4,4]
    %7 = add(%5, %5) : f32[1,3,4]
    result y = %7
    result z = %6
  })");
  EXPECT_TRUE(tf32(graph, with_units()));
  EXPECT_EQ(print(graph), test::canonical(R"(graph g {
    input x = %0 : f32[1,3,12]
    param w = %1 : f32[4,4]
    param u = %2 : bf16[4,4]
    %3, %4 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0, tf32=true} : f32[1,3,4], f32[1,2,3]
    %5 = matmul(%3, %1) {tf32=true, trans_a=false, trans_b=false} #backward : f32[1,3,4]
    %6 = matmul(%2, %2) {trans_a=false, trans_b=false} : bf16[4,4]
    %7 = add(%5, %5) : f32[1,3,4]
    result y = %7
    result z = %6
  })"));
  EXPECT_FALSE(tf32(graph, with_units())) << "marked twice";
}

TEST(Tf32, DoesNotFireWithoutUnits) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[4,4]
    %1 = matmul(%0, %0) {trans_a=false, trans_b=false} : f32[4,4]
    result y = %1
  })");
  PassContext context = with_units();
  context.target.tf32_flops = 0;
  EXPECT_FALSE(tf32(graph, context));
  EXPECT_FALSE(graph.nodes()[0].attrs.find("tf32"));
}

// Fused with its bias, a product is priced by the node inside of the group's body.
TEST(Tf32, SurvivesFusingAndSetsTheRate) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[4,4]
    param b = %1 : f32[4]
    %2 = matmul(%0, %0) {trans_a=false, trans_b=false} : f32[4,4]
    %3 = add(%2, %1) : f32[4,4]
    result y = %3
  })");
  PassContext context = with_units();
  run_passes(graph, Stage::kStep, context);
  ASSERT_EQ(graph.nodes().size(), 1u);
  const Node& group = graph.nodes()[0];
  const Node& matmul = group.body->nodes()[0];
  EXPECT_TRUE(matmul.attrs.get_bool("tf32")) << print(graph);
  EXPECT_EQ(flop_rate(*group.body, matmul, context.target), 8e12);
  context.target.tf32_flops = 0;
  EXPECT_EQ(flop_rate(*group.body, matmul, context.target), 1e12);
}

}  // namespace
}  // namespace tokamak
