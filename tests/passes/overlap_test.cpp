#include "passes/overlap.h"

#include "tests/passes/sharded_run.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tokamak {
namespace {

// The backward pass of two blocks, the upper one first, each with two weights of which one is the stream's.
constexpr const char* kStep = R"(graph g {
  input x1 = %0 : f32[8,4]
  input x0 = %1 : f32[8,4]
  input dy = %2 : f32[4,4]
  param w1 = %3 : f32[4,4]
  param v1 = %4 : f32[4,4]
  param w0 = %5 : f32[4,4]
  param v0 = %6 : f32[4,4]
  param b = %7 : f32[4,4]
  %8 = all_gather(%2) {axis="tensor", dims=[0], size=2} #backward : f32[8,4]
  %9 = matmul(%8, %3) {trans_a=false, trans_b=true} #backward : f32[8,4]
  %10 = matmul(%0, %8) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %11 = all_reduce(%10) {axis="data", reduction="sum", size=1} #backward : f32[4,4]
  %12 = matmul(%0, %9) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %13 = reduce_scatter(%9) {axis="tensor", dims=[0], size=2} #backward : f32[4,4]
  %14 = mul(%13, %13) #backward : f32[4,4]
  %15 = all_gather(%14) {axis="tensor", dims=[0], size=2} #backward : f32[8,4]
  %16 = matmul(%15, %5) {trans_a=false, trans_b=true} #backward : f32[8,4]
  %17 = matmul(%1, %15) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %18 = matmul(%1, %16) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %19 = reduce_scatter(%16) {axis="tensor", dims=[0], size=2} #backward : f32[4,4]
  %20 = mul(%19, %19) #backward : f32[4,4]
  %21 = add(%3, %11) #update : f32[4,4]
  %22 = add(%4, %12) #update : f32[4,4]
  %23 = add(%5, %17) #update : f32[4,4]
  %24 = add(%6, %18) #update : f32[4,4]
  %25 = add(%7, %20) #update : f32[4,4]
  update %3 = %21
  update %4 = %22
  update %5 = %23
  update %6 = %24
  update %7 = %25
})";

// In which the link takes as long for one message as so many of the step's products.
PassContext context_of(double products) {
  PassContext context;
  context.target.f32_flops = 1;
  context.target.pointwise_flops = 1e9;
  context.target.link_bandwidth = 4 * 4 * 4 / (products * 2 * 8 * 4 * 4);
  return context;
}

// Products for weights W, of the first of which the sum over data ranks is R, other products P, the stream gathered G
// and scattered S, and what reads it then N.
std::string order_of(const Graph& graph) {
  std::string order;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "matmul") order += node.attrs.get_bool("trans_a") ? 'W' : 'P';
    if (node.op->name == "all_gather") order += 'G';
    if (node.op->name == "all_reduce") order += 'R';
    if (node.op->name == "reduce_scatter") order += 'S';
    if (node.op->name == "mul") order += 'N';
  }
  return order;
}

std::string order_after(double products) {
  Graph graph = test::parse(kStep);
  overlap(graph, context_of(products));
  verify(graph);
  EXPECT_TRUE(std::is_sorted(graph.nodes().begin(), graph.nodes().end(), [](const Node& a, const Node& b) {
    return a.phase < b.phase;
  })) << "something of the backward pass stands behind the update";
  return order_of(graph);
}

TEST(Overlap, ProductsForWeightsRunWhileTheStreamIsSent) {
  EXPECT_EQ(order_of(test::parse(kStep)), "GPWRWSNGPWWSN");
  EXPECT_EQ(order_after(0.9), "GPSWNGRWPSWNW") << "one a message";
  EXPECT_EQ(order_after(1.1), "GPSWNGRWPSWNW") << "a short rest takes no other";
  EXPECT_EQ(order_after(2), "GPSWWNGRPSWWN") << "two a message";
}

std::string with(std::string text, std::initializer_list<std::pair<std::string, std::string>> replacements) {
  for (const auto& [from, to] : replacements) {
    size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
  }
  return text;
}

// The same without the messages of the upper block, and of the lower one but for the last where that is to be.
std::string with_one_message(bool last) {
  const std::string sends = "{axis=\"tensor\", dims=[0], size=2}", slice = "{begin=0, dim=0, size=4}";
  std::string text = with(kStep, {{"reduce_scatter(%9) " + sends, "slice(%9) " + slice},
                                  {"all_gather(%14) " + sends, "matmul(%1, %14) {trans_a=false, trans_b=false}"}});
  return last ? text : with(text, {{"reduce_scatter(%16) " + sends, "slice(%16) " + slice}});
}

TEST(Overlap, NoProductWaitsForNothing) {
  Graph graph = test::parse(with_one_message(false).c_str());
  std::string before = print(graph);
  EXPECT_FALSE(overlap(graph, context_of(1)));
  EXPECT_EQ(print(graph), before);
}

TEST(Overlap, NoMoreThanFourProductsWait) {
  Graph graph = test::parse(with_one_message(true).c_str());
  overlap(graph, context_of(9));
  EXPECT_EQ(order_of(graph), "GPNPPSWRWWWN");
  const std::string fifth = "%26 = matmul(%0, %9) {trans_a=true, trans_b=false} #backward : f32[4,4]\n  ";
  graph = test::parse(
      with(with_one_message(true), {{"%13 = slice", fifth + "%13 = slice"}, {"add(%7, %20)", "add(%26, %20)"}})
          .c_str());
  overlap(graph, context_of(9));
  EXPECT_EQ(order_of(graph), "GPNPPWRSWWWWN");
}

TEST(Overlap, TakesTheProductThatLastsLongEnough) {
  std::string text = with(kStep, {{"%4 : f32[4,4]", "%4 : f32[16,4]"},
                                  {"input x0 = %1", "input y = %26 : f32[8,16]\n  input x0 = %1"},
                                  {"%12 = matmul(%0, %9) {trans_a=true, trans_b=false} #backward : f32[4,4]",
                                   "%12 = matmul(%26, %9) {trans_a=true, trans_b=false} #backward : f32[16,4]"},
                                  {"%22 = add(%4, %12) #update : f32[4,4]", "%22 = add(%4, %12) #update : f32[16,4]"}});
  for (double products : {3, 5}) {  // of which the longer one takes four, and both five
    Graph graph = test::parse(text.c_str());
    ASSERT_TRUE(overlap(graph, context_of(products)));
    std::vector<int64_t> rows;
    for (const Node& node : graph.nodes())
      if (node.op->name == "matmul" && node.attrs.get_bool("trans_a")) rows.push_back(graph.shape(node.outputs[0])[0]);
    EXPECT_EQ(rows, (std::vector<int64_t>{16, 4, 4, 4})) << products;
  }
}

TEST(Overlap, ChangesNoBit) {
  for (double products : {0.1, 0.9, 2.0}) {
    Graph before = test::parse(kStep), after = test::parse(kStep);
    ASSERT_TRUE(overlap(after, context_of(products)));
    const Mesh mesh{{{"data", 1}, {"tensor", 2}}};
    std::vector<HostTensor> one = test::random_arguments(before), other = one;
    for (double& x : other[2].data) x += 1;  // ranks have parts of their own
    EXPECT_EQ(test::find_difference(before, after, mesh, {one, other}), "") << products;
  }
}

// What the backward pass goes on with is no gradient of a parameter. While it is computed the message comes, so that
// nothing needs to fill a wait for that.
TEST(Overlap, LeavesWhatTheBackwardPassReads) {
  Graph graph = test::parse(with(kStep, {{"mul(%13, %13)", "mul(%13, %12)"}}).c_str());
  overlap(graph, context_of(0.9));
  verify(graph);
  EXPECT_EQ(order_of(graph), "GPWSNGWRPSWNW");
}

}  // namespace
}  // namespace tokamak
