#include "passes/overlap.h"

#include "passes/eliminate_common_subexpressions.h"
#include "tests/passes/sharded_run.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// The backward pass of two layers, the second one first, each with a weight above its attention.
constexpr const char* kStep = R"(graph g {
  input qkv = %0 : f32[2,4,6]
  input x = %1 : f32[2,4,2]
  input dy = %2 : f32[2,4,2]
  param w1 = %3 : f32[2,2]
  param w0 = %4 : f32[2,2]
  state step = %5 : f32[]
  %6 = add(%0, %5) : f32[2,4,6]
  %7 = add(%6, %5) : f32[2,4,6]
  %8, %9 = attention(%6) {causal=true, dropout=0.0, heads=1, scale=1.0, stream=0} : f32[2,4,2], f32[2,1,4]
  %10, %11 = attention(%7) {causal=true, dropout=0.0, heads=1, scale=1.0, stream=0} : f32[2,4,2], f32[2,1,4]
  %12 = reshape(%1) {shape=[8,2]} : f32[8,2]
  %13 = reshape(%2) {shape=[8,2]} #backward : f32[8,2]
  %14 = matmul(%12, %13) {trans_a=true, trans_b=false} #backward : f32[2,2]
  %15 = matmul(%2, %3) {trans_a=false, trans_b=true} #backward : f32[2,4,2]
  %16 = attention_grad(%7, %10, %11, %15) {causal=true, dropout=0.0, heads=1, scale=1.0, stream=0} #backward : f32[2,4,6]
  %17 = slice(%16) {begin=0, dim=2, size=2} #backward : f32[2,4,2]
  %18 = reshape(%17) {shape=[8,2]} #backward : f32[8,2]
  %19 = matmul(%12, %18) {trans_a=true, trans_b=false} #backward : f32[2,2]
  %20 = matmul(%17, %4) {trans_a=false, trans_b=true} #backward : f32[2,4,2]
  %21 = attention_grad(%6, %8, %9, %20) {causal=true, dropout=0.0, heads=1, scale=1.0, stream=0} #backward : f32[2,4,6]
  %22 = reduce_sum(%21) {dims=[0,1,2], keep=false} #backward : f32[]
  %23 = add(%3, %14) #update : f32[2,2]
  %24 = add(%4, %19) #update : f32[2,2]
  %25 = add(%5, %22) #update : f32[]
  update %3 = %23
  update %4 = %24
  update %5 = %25
})";

const Mesh kTwo{{{"context", 2}}};

Graph sharded_step() {
  std::vector<Cut> time = {{"context", 2, 1, 2, true}};
  Graph graph = shard_graph(test::parse(kStep), kTwo, {{0, time}, {1, time}, {2, time}});
  EXPECT_TRUE(eliminate_common_subexpressions(graph, {})) << "both passes send the same keys and values";
  return graph;
}

// What stands where: of a weight's gradient W, attention's gradient A, gather G (in the backward pass) and scatter S.
std::string order_of(const Graph& graph) {
  std::string order;
  for (const Node& node : graph.nodes()) {
    if (node.phase != Phase::kBackward) continue;
    if (node.op->name == "matmul" && node.attrs.get_bool("trans_a")) order += 'W';
    if (node.op->name == "context_attention_grad") order += 'A';
    if (node.op->name == "all_gather") order += 'G';
    if (node.op->name == "reduce_scatter") order += 'S';
  }
  return order;
}

TEST(OverlapContext, SendsBesideProductsForWeights) {
  Graph graph = sharded_step();
  EXPECT_EQ(order_of(graph), "WGASWGAS");
  EXPECT_TRUE(overlap(graph, {}));
  verify(graph);
  EXPECT_EQ(order_of(graph), "GWASGWAS") << "the second gathering comes ahead, and products while one is waited for";
  std::vector<HostTensor> arguments = test::random_arguments(test::parse(kStep));
  EXPECT_EQ(test::find_sharding_fault(test::parse(kStep), graph, kTwo, arguments, 1e-9), "");
}

TEST(OverlapContext, LeavesOtherGraphs) {
  Graph graph = test::parse(kStep);
  std::string before = print(graph);
  EXPECT_FALSE(overlap(graph, {}));
  EXPECT_EQ(print(graph), before);
}

}  // namespace
}  // namespace tokamak
