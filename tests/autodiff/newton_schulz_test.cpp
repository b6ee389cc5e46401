#include "autodiff/newton_schulz.h"

#include "graph/builder.h"
#include "ops/movement.h"
#include "tests/autodiff/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

HostTensor orthogonal_of(const HostTensor& matrix) {
  Graph graph("newton_schulz");
  GraphBuilder g(graph);
  Shape shape = matrix.shape();
  ValueId one = reshape(g, g.input("m", matrix.type), {1, shape[0], shape[1]});
  graph.add_result("x", reshape(g, orthogonalized(g, one), shape));
  Values values{{"m", matrix}};
  return run_graph(graph, values)[0];
}

// U = diag(2 x 2 rotation), V = 1: known singular vectors.
TEST(NewtonSchulz, SingularValuesBecomeNearlyOne) {
  for (double angle : {0.0, 0.3, 1.2})
    for (double smallest : {0.05, 0.4, 1.0}) {
      double c = std::cos(angle), s = std::sin(angle);
      HostTensor x = orthogonal_of({{DType::kF32, {2, 2}}, {5 * c, -5 * smallest * s, 5 * s, 5 * smallest * c}});
      double first = x[0] * c + x[2] * s, second = -x[1] * s + x[3] * c;
      EXPECT_NEAR(x[0], first * c, 1e-12);
      EXPECT_NEAR(x[1], -second * s, 1e-12);
      for (double singular : {first, second}) {
        EXPECT_GT(singular, 0.65) << angle << " " << smallest;
        EXPECT_LT(singular, 1.25) << angle << " " << smallest;
      }
    }
}

TEST(NewtonSchulz, SizeDoesNotMatter) {
  HostTensor matrix{{DType::kF32, {3, 3}}, {1, 2, -1, 0.5, 0.25, 3, -2, 1, 0.125}}, larger = matrix;
  for (double& x : larger.data) x *= 1024;
  HostTensor expected = orthogonal_of(matrix), scaled = orthogonal_of(larger);
  for (int64_t i = 0; i < 9; ++i) EXPECT_NEAR(scaled[i], expected[i], 1e-12);
}

TEST(NewtonSchulz, ZerosStayZeros) {
  HostTensor zeros{{DType::kF32, {2, 3}}};
  EXPECT_EQ(orthogonal_of(zeros).data, zeros.data);
}

// Each of several matrices by itself.
TEST(NewtonSchulz, ManyAreAsEachAlone) {
  HostTensor first{{DType::kF32, {2, 3}}, {1, 2, -1, 0.5, 0.25, 3}}, second{{DType::kF32, {2, 3}}, {-7, 0, 2, 1, 9, 4}};
  HostTensor both{{DType::kF32, {2, 2, 3}}, first.data};
  both.data.insert(both.data.end(), second.data.begin(), second.data.end());
  Graph graph("newton_schulz");
  GraphBuilder g(graph);
  graph.add_result("x", orthogonalized(g, g.input("m", both.type)));
  Values values{{"m", both}};
  HostTensor together = run_graph(graph, values)[0], alone[] = {orthogonal_of(first), orthogonal_of(second)};
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(together[i], alone[i / 6][i % 6]) << i;
}

// What the sides are is seen in the products: the square ones are as small as can be.
TEST(NewtonSchulz, TakesTheSmallerSide) {
  for (const Shape& shape : {Shape{3, 2, 8}, Shape{3, 8, 2}}) {
    Graph graph("newton_schulz");
    GraphBuilder g(graph);
    orthogonalized(g, g.input("m", {DType::kF32, shape}));
    int small = 0;
    for (const Node& node : graph.nodes())
      small += node.op->name == "matmul" && graph.shape(node.outputs[0]) == Shape{3, 2, 2};
    EXPECT_EQ(small, 10);
  }
}

}  // namespace
}  // namespace tokamak::test
