#include "passes/last_gradient.h"

#include "passes/bucket.h"
#include "passes/overlap.h"
#include "passes/weight_products.h"
#include "tests/passes/sharded_run.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Two products for weights, and behind them the gradient of a table that is larger than a bucket of 1 MiB.
constexpr const char* kStep = R"(graph g {
  input x = %0 : f32[64,4]
  input dy = %1 : f32[64,8]
  input tokens = %2 : i32[64]
  param w1 = %3 : f32[4,8]
  param w0 = %4 : f32[4,8]
  param table = %5 : f32[70000,4]
  %6 = matmul(%0, %1) {trans_a=true, trans_b=false} #backward : f32[4,8]
  %7 = all_reduce(%6) {axis="data", reduction="sum", size=2} #backward : f32[4,8]
  %8 = mul(%1, %1) #backward : f32[64,8]
  %9 = matmul(%0, %8) {trans_a=true, trans_b=false} #backward : f32[4,8]
  %10 = all_reduce(%9) {axis="data", reduction="sum", size=2} #backward : f32[4,8]
  %11 = matmul(%8, %3) {trans_a=false, trans_b=true} #backward : f32[64,4]
  %12 = embedding_grad(%11, %2) {rows=70000} #backward : f32[70000,4]
  %13 = all_reduce(%12) {axis="data", reduction="sum", size=2} #backward : f32[70000,4]
  %14 = add(%3, %7) #update : f32[4,8]
  %15 = add(%4, %10) #update : f32[4,8]
  %16 = add(%5, %13) #update : f32[70000,4]
  update %3 = %14
  update %4 = %15
  update %5 = %16
})";

// In which the link takes as long as so many of the step's products for weights.
PassContext context_of(double products) {
  PassContext context;
  context.bucket_mib = 1;
  context.target.f32_flops = 1;
  context.target.link_bandwidth = 70000 * 4 * 4 / (products * 2 * 4 * 8 * 64);
  return context;
}

// Products for weights W, other products P, the table's gradient E, collectives of it L and of others S.
std::string order_of(const Graph& graph) {
  std::string order;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "matmul") order += node.attrs.get_bool("trans_a") ? 'W' : 'P';
    if (node.op->name == "embedding_grad") order += 'E';
    if (node.op->name == "all_reduce") order += graph.shape(node.inputs[0])[0] == 70000 ? 'L' : 'S';
  }
  return order;
}

TEST(LastGradient, ProductsForWeightsComeBehindTheLastGradient) {
  for (auto [products, expected] : {std::pair(0.5, "WSPELWS"), {1.5, "PELWSWS"}, {9.0, "PELWSWS"}}) {
    Graph graph = test::parse(kStep);
    EXPECT_EQ(order_of(graph), "WSWSPEL");
    EXPECT_TRUE(overlap(graph, context_of(products)));
    verify(graph);
    EXPECT_EQ(order_of(graph), expected) << products;
  }
}

TEST(LastGradient, ChangesNoBit) {
  Graph before = test::parse(kStep), after = test::parse(kStep);
  ASSERT_TRUE(overlap(after, context_of(9)));
  const Mesh two{{{"data", 2}}};
  std::vector<HostTensor> one = test::random_arguments(before), other = one;
  for (double& x : other[0].data) x += 1;  // ranks have inputs of their own
  EXPECT_EQ(test::find_difference(before, after, two, {one, other}), "");
}

// Neither what the table's gradient is made of, nor what is read by it, can come behind it.
TEST(LastGradient, LeavesWhatTheLastGradientNeeds) {
  std::string text = kStep;
  for (size_t at = text.find("matmul(%8, %3)"); at != std::string::npos; at = std::string::npos)
    text.replace(at, 14, "matmul(%8, %7)");
  Graph graph = test::parse(text.c_str());
  EXPECT_TRUE(overlap(graph, context_of(9)));
  EXPECT_EQ(order_of(graph), "WSPELWS");
}

// Over a slow link what the products give would take longer than they do.
TEST(LastGradient, LeavesStepsThatAreLimitedByLinks) {
  Graph graph = test::parse(kStep);
  PassContext context = context_of(9);
  context.target.f32_flops = 1e4;
  EXPECT_FALSE(overlap(graph, context));
}

// What goes on in the backward pass is no gradient of a parameter, but a message that is waited for.
TEST(LastGradient, IsNotReadInTheBackwardPass) {
  std::string text = kStep;
  text.replace(text.find("%14 = add"), 0, "%17 = mul(%13, %13) #backward : f32[70000,4]\n  ");
  Graph graph = test::parse(text.c_str());
  EXPECT_EQ(find_last_gradient(graph, find_weight_products(graph), context_of(9)).node, -1);
  EXPECT_EQ(find_last_gradient(test::parse(kStep), find_weight_products(test::parse(kStep)), context_of(9)).node, 7);
}

TEST(LastGradient, LeavesStepsWhoseLastGradientIsSmall) {
  Graph graph = test::parse(kStep);
  PassContext context = context_of(9);
  context.bucket_mib = 2;
  EXPECT_FALSE(overlap(graph, context));
}

// What is behind a collective that is larger than a bucket does not hold back what is before it.
TEST(LastGradient, BucketsEndAtALargeCollective) {
  Graph graph = test::parse(kStep);
  ASSERT_TRUE(overlap(graph, context_of(0.5)));
  PassContext context = context_of(0.5);
  bucket(graph, context);
  verify(graph);
  EXPECT_EQ(order_of(graph), "WSPELWS");
}

}  // namespace
}  // namespace tokamak
