#include "passes/overlap_halves.h"

#include "config/mesh_config.h"
#include "passes/halves.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace tokamak {
namespace {

// Two halves of the same work, the first one's nodes first: a product, what is sent of it, a sum of what has come,
// which is gathered, and a product of that; in the backward pass the gradient of the weight.
constexpr const char* kStep = R"(graph g {
  input x = %0 : f32[16,4]
  param w = %1 : f32[4,4]
  %2 = reshape(%0) {shape=[1,2,8,4]} : f32[1,2,8,4]
  %3 = slice(%2) {begin=0, dim=1, size=1} : f32[1,1,8,4]
  %4 = slice(%2) {begin=1, dim=1, size=1} : f32[1,1,8,4]
  %5 = reshape(%3) {shape=[8,4]} : f32[8,4]
  %6 = reshape(%4) {shape=[8,4]} : f32[8,4]
  %7 = matmul(%5, %1) {trans_a=false, trans_b=false} : f32[8,4]
  %8 = reduce_scatter(%7) {axis="tensor", dims=[0], size=2} : f32[4,4]
  %9 = mul(%8, %8) : f32[4,4]
  %10 = all_gather(%9) {axis="tensor", dims=[0], size=2} : f32[8,4]
  %11 = matmul(%10, %1) {trans_a=false, trans_b=true} : f32[8,4]
  %12 = matmul(%6, %1) {trans_a=false, trans_b=false} : f32[8,4]
  %13 = reduce_scatter(%12) {axis="tensor", dims=[0], size=2} : f32[4,4]
  %14 = mul(%13, %13) : f32[4,4]
  %15 = all_gather(%14) {axis="tensor", dims=[0], size=2} : f32[8,4]
  %16 = matmul(%15, %1) {trans_a=false, trans_b=true} : f32[8,4]
  %17 = matmul(%5, %11) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %18 = matmul(%6, %16) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %19 = add(%17, %18) #backward : f32[4,4]
  %20 = all_reduce(%19) {axis="data", reduction="sum", size=1} #backward : f32[4,4]
  %21 = add(%1, %20) #update : f32[4,4]
  update %1 = %21
})";

// In which the link takes as long for one message as so many of the step's products.
PassContext context_of(double products) {
  PassContext context;
  context.target.f32_flops = 1;
  context.target.pointwise_flops = 1e9;
  context.target.link_bandwidth = 4 * 4 * 4 / (products * 2 * 8 * 4 * 4);
  return context;
}

// Capital letters are of the first half: products P, what is scattered S, the sum of that N, what is gathered G; of
// both a sum + and what is sent of it R.
std::string order_of(const Graph& graph) {
  std::vector<int> halves = find_halves(graph);
  std::string order;
  for (size_t n = 0; n < halves.size(); ++n) {
    std::string_view name = graph.nodes()[n].op->name;
    char letter = name == "matmul"           ? 'P'
                  : name == "reduce_scatter" ? 'S'
                  : name == "mul"            ? 'N'
                  : name == "all_gather"     ? 'G'
                                             : 0;
    if (letter) order += halves[n] == 2 ? char(std::tolower(letter)) : letter;
    if (name == "add" && graph.nodes()[n].phase != Phase::kUpdate) order += '+';
    if (name == "all_reduce") order += 'R';
  }
  return order;
}

TEST(OverlapHalves, OneComputesWhileTheOtherWaits) {
  Graph graph = test::parse(kStep);
  EXPECT_EQ(order_of(graph), "PSNGPpsngpPp+R");
  ASSERT_TRUE(overlap_halves(graph, context_of(1)));
  verify(graph);
  EXPECT_EQ(order_of(graph), "PSpsNGngPpPp+R");
}

TEST(OverlapHalves, LeavesOtherGraphs) {
  Graph whole = test::step_of({.layers = 1, .heads = 2, .width = 8, .context = 8, .vocab = 24});
  std::string before = print(whole);
  EXPECT_FALSE(overlap_halves(whole, context_of(1)));
  EXPECT_EQ(print(whole), before);
}

Graph step_in_halves(const ModelConfig& model, int64_t ranks) {
  Graph graph = in_halves(forward_graph("step", model, 4, model.context, false), ranks);
  GraphBuilder g(graph);
  append_update(g, test::append_gradients(g, graph.find_result("loss")), test::kAdamw, 1);
  return graph;
}

PassContext context_of(const MeshConfig& config, double slowness) {
  PassContext context;
  context.mesh = step_mesh(config);
  context.zero = config.zero;
  context.sequence = true;
  context.bucket_mib = 1;
  context.target.streams = 2;
  context.target.link_bandwidth = context.target.f32_flops / (100 * slowness);
  return context;
}

Graph compiled(Graph step, PassContext context, bool overlaps) {
  if (!overlaps) context.options.disable_passes = {"overlap_halves"};
  run_passes(step, Stage::kStep, context);
  return step;
}

TEST(OverlapHalves, WholeStepsHaveTheSameBits) {
  ModelConfig model{.layers = 3, .heads = 4, .width = 16, .context = 8, .vocab = 24};
  int moved = 0;
  for (auto [data, context, tensor, zero] :
       {std::array{1, 1, 2, 0}, {1, 2, 1, 0}, {2, 1, 2, 0}, {2, 1, 2, 3}, {1, 2, 2, 0}, {2, 2, 2, 2}})
    for (double slowness : {0.01, 1.0, 30.0}) {
      SCOPED_TRACE(testing::Message() << "data " << data << " x context " << context << " x tensor " << tensor
                                      << ", ZeRO " << zero << ", " << slowness);
      PassContext pass_context =
          context_of({.data = data, .context = context, .tensor = tensor, .zero = zero}, slowness);
      Graph step = step_in_halves(model, data);
      Graph got = compiled(step, pass_context, true), expected = compiled(step, pass_context, false);
      moved += print(got) != print(expected);
      auto arguments = test::arguments_of_ranks(expected, pass_context.mesh, test::step_arguments(step));
      ASSERT_EQ(test::find_difference(expected, got, pass_context.mesh, arguments), "");
    }
  EXPECT_EQ(moved, 18);
}

}  // namespace
}  // namespace tokamak
