#include "passes/split_chunk.h"

#include "graph/builder.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::canonical;

// y = tanh(x w) with the gradients of x and w; the scale depends on a parameter alone.
const Graph& chunk() {
  static const Graph graph = test::parse(R"(graph chunk {
    param w = %0 : f32[4,4]
    state stream.1 = %1 {role="residual"} : f32[2,4]
    state stream.2 = %2 {role="residual"} : f32[2,4]
    state stream_grad.2 = %3 {role="residual"} : f32[2,4]
    state stream_grad.1 = %4 {role="residual"} : f32[2,4]
    state grad.w = %5 {of="w", role="gradient_sum"} : f32[4,4]
    %6 = neg(%0) : f32[4,4]
    %7 = matmul(%1, %6) {trans_a=false, trans_b=false} : f32[2,4]
    %8 = tanh(%7) : f32[2,4]
    %9 = mul(%8, %3) #backward : f32[2,4]
    %10 = matmul(%9, %6) {trans_a=false, trans_b=true} #backward : f32[2,4]
    %11 = matmul(%1, %9) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %12 = add(%5, %11) #update : f32[4,4]
    update %2 = %8
    update %4 = %10
    update %5 = %12
  })");
  return graph;
}

std::vector<Graph> split(bool splits_backward) {
  return split_chunk({chunk(), 3, ".3", "stream.2", false, "stream_grad.1"}, splits_backward);
}

TEST(SplitChunk, KeepsActivationsAndMakesWhatParametersGiveAgain) {
  std::vector<Graph> programs = split(false);
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(print(programs[0]), canonical(R"(graph forward.3 {
    param w = %0 : f32[4,4]
    state stream.1 = %1 {role="residual"} : f32[2,4]
    state stream.2 = %2 {role="residual"} : f32[2,4]
    state act.3.0 = %3 {role="activation"} : f32[2,4]
    %4 = neg(%0) : f32[4,4]
    %5 = matmul(%1, %4) {trans_a=false, trans_b=false} : f32[2,4]
    %6 = tanh(%5) : f32[2,4]
    update %2 = %6
    update %3 = %6
  })"));
  EXPECT_EQ(print(programs[1]), canonical(R"(graph backward.3 {
    param w = %0 : f32[4,4]
    state stream.1 = %1 {role="residual"} : f32[2,4]
    state stream_grad.2 = %2 {role="residual"} : f32[2,4]
    state stream_grad.1 = %3 {role="residual"} : f32[2,4]
    state grad.w = %4 {of="w", role="gradient_sum"} : f32[4,4]
    state act.3.0 = %5 {role="activation"} : f32[2,4]
    %6 = neg(%0) : f32[4,4]
    %7 = mul(%5, %2) #backward : f32[2,4]
    %8 = matmul(%7, %6) {trans_a=false, trans_b=true} #backward : f32[2,4]
    %9 = matmul(%1, %7) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %10 = add(%4, %9) #update : f32[4,4]
    update %3 = %8
    update %4 = %10
  })"));
}

TEST(SplitChunk, PutsGradientsOfParametersInAProgramOfTheirOwn) {
  std::vector<Graph> programs = split(true);
  ASSERT_EQ(programs.size(), 3u);
  EXPECT_EQ(programs[1].name(), "backward_input.3");
  EXPECT_EQ(test::count_ops(programs[1], "matmul"), 1);
  EXPECT_EQ(print(programs[2]), canonical(R"(graph backward_weight.3 {
    state stream.1 = %0 {role="residual"} : f32[2,4]
    state grad.w = %1 {of="w", role="gradient_sum"} : f32[4,4]
    state act.3.1 = %2 {role="activation"} : f32[2,4]
    %3 = matmul(%0, %2) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %4 = add(%1, %3) #update : f32[4,4]
    update %1 = %4
  })"));
}

TEST(SplitChunk, LeavesTheLastEndToNobody) {
  std::vector<Graph> programs = split_chunk({chunk(), 3, ".3", "stream.2", true, "stream_grad.1"}, false);
  for (const Graph& program : programs) EXPECT_EQ(program.find_argument("stream.2"), kNoValue) << program.name();
  EXPECT_EQ(test::count_ops(programs[0], "tanh"), 1);
  EXPECT_EQ(test::count_ops(programs[1], "tanh"), 0);
}

// In another program it would be a kernel of its own, which adds in another order than one that makes %9 as well.
TEST(SplitChunk, LeavesSumsWithWhatTheyAreOf) {
  Graph graph = chunk();
  GraphBuilder g(graph);
  ValueId sum = g.state("grad.b", {DType::kF32, {4}}, Role::kGradientSum);
  graph.add_update(sum, add(g, sum, reduce_sum(g, 9, {0}, false)));
  std::vector<Graph> programs = split_chunk({graph, 3, ".3", "stream.2", false, "stream_grad.1"}, true);
  ASSERT_EQ(programs.size(), 3u);
  EXPECT_EQ(test::count_ops(programs[1], "reduce_sum"), 1);
  EXPECT_EQ(test::count_ops(programs[2], "reduce_sum"), 0);
  EXPECT_NE(programs[1].find_argument("grad.b"), kNoValue);
  EXPECT_EQ(programs[2].find_argument("grad.b"), kNoValue);
}

}  // namespace
}  // namespace tokamak
