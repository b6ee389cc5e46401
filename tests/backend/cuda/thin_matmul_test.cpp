#include "backend/cuda/thin_matmul.h"

#include "graph/builder.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/pointwise.h"
#include "passes/pass.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

struct ThinCase {
  int64_t m, n, k;
  bool trans_b;
  DType dtype;
  bool bias = false, gelu = false;
};

// As generation compiles it.
Graph thin_graph(const ThinCase& c) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", {c.dtype, {c.m, c.k}});
  ValueId w = g.input("w", {c.dtype, c.trans_b ? Shape{c.n, c.k} : Shape{c.k, c.n}});
  ValueId y = matmul(g, x, w, false, c.trans_b);
  if (c.bias) y = add(g, y, g.input("bias", {c.dtype, {c.n}}));
  graph.add_result("y", c.gelu ? gelu(g, y) : y);
  run_passes(graph, Stage::kStep, {cuda::nominal_platform(), {}});
  return graph;
}

const Node& matmul_of(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op == &op::matmul || node.op == &op::fused_matmul) return node;
  throw std::runtime_error("no matmul");
}

const ThinCase kCases[] = {
    {1, 768, 768, false, DType::kBF16, true},    {1, 3072, 768, false, DType::kBF16, true, true},
    {1, 768, 3072, false, DType::kF16, true},    {8, 2304, 768, false, DType::kBF16, true},
    {3, 40, 56, false, DType::kF32, true, true}, {1, 50257, 768, true, DType::kBF16},
    {8, 1000, 768, true, DType::kF16},           {5, 33, 72, true, DType::kF32, true},
    {1, 64, 8, true, DType::kBF16, true, true},
};

TEST(ThinMatmul, TakesBiasAndFunction) {
  for (const ThinCase& c : kCases) {
    Graph graph = thin_graph(c);
    EXPECT_EQ(graph.nodes().size(), 1u) << print(graph);
    EXPECT_TRUE(cuda::thin_supports(cuda::matmul_node(graph, matmul_of(graph))));
  }
}

TEST(ThinMatmul, IsForFewWholeRows) {
  for (ThinCase c :
       {ThinCase{9, 64, 64, false, DType::kBF16}, {1, 60, 64, false, DType::kBF16}, {1, 64, 60, true, DType::kBF16}}) {
    Graph graph = thin_graph(c);
    EXPECT_FALSE(cuda::thin_supports(cuda::matmul_node(graph, matmul_of(graph)))) << c.m << ' ' << c.n << ' ' << c.k;
  }
}

TEST(ThinMatmul, Compiles) {
  for (const ThinCase& c : kCases) {
    Graph graph = thin_graph(c);
    std::string source = cuda::thin_matmul_source(cuda::matmul_node(graph, matmul_of(graph)));
    expect_compiles(source, {"multiply_rows", "multiply_columns"}, one_architecture());
  }
}

TEST(GpuThinMatmul, MatchesTheInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const ThinCase& c : kCases) {
    Graph graph = thin_graph(c);
    std::vector<HostTensor> arguments = random_arguments(graph);
    expect_matches_interpreter(graph, arguments);
    expect_deterministic(graph, arguments);
  }
}

// A row has the same bits alone and among others.
TEST(GpuThinMatmul, RowsDoNotDependOnEachOther) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (bool trans_b : {false, true}) {
    Graph many = thin_graph({8, 768, 768, trans_b, DType::kBF16}),
          one = thin_graph({1, 768, 768, trans_b, DType::kBF16});
    std::vector<HostTensor> arguments = random_arguments(many);
    HostTensor together = run_on_gpu(many, arguments).results[0];
    for (int64_t row : {0, 7}) {
      std::vector<HostTensor> alone = random_arguments(one);
      alone[1] = arguments[1];
      std::copy_n(arguments[0].data.begin() + row * 768, 768, alone[0].data.begin());
      HostTensor y = run_on_gpu(one, alone).results[0];
      EXPECT_TRUE(std::equal(y.data.begin(), y.data.end(), together.data.begin() + row * 768)) << row;
    }
  }
}

}  // namespace
}  // namespace tokamak::test
