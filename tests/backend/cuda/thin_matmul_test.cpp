#include "backend/cuda/thin_matmul.h"

#include "graph/builder.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "passes/pass.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
  run_passes(graph, PassStage::kStep, {cuda::nominal_platform(), {}});
  return graph;
}

struct NormCase {
  int64_t m, n, k;
  DType dtype;
  bool bias = true, stored = false;  // the sum before the norm
  int addends = 2;
  bool trans_b = false, made = false;  // the addends are made by kernels
};

// layer_norm(x + ...) w, as generation compiles it.
Graph norm_graph(const NormCase& c) {
  Graph graph;
  GraphBuilder g(graph);
  auto addend = [&](int i) {
    ValueId given = g.input("x" + std::to_string(i), {c.dtype, c.made ? Shape{c.k, c.m} : Shape{c.m, c.k}});
    return c.made ? transpose(g, given, {1, 0}) : given;
  };
  ValueId x = addend(0);
  for (int i = 1; i < c.addends; ++i) x = add(g, x, addend(i));
  ValueId gain = g.parameter("gain", {DType::kF32, {c.k}}), shift = g.parameter("shift", {DType::kF32, {c.k}});
  ValueId w = g.parameter("w", {c.dtype, c.trans_b ? Shape{c.n, c.k} : Shape{c.k, c.n}});
  ValueId a = cast(g, layer_norm(g, cast(g, x, DType::kF32), gain, shift, 1e-5), c.dtype);
  ValueId y = matmul(g, a, w, false, c.trans_b);
  if (c.bias) y = add(g, y, g.parameter("bias", {c.dtype, {c.n}}));
  graph.add_result("y", y);
  if (c.stored) graph.add_result("sum", x);
  run_passes(graph, PassStage::kStep, {cuda::nominal_platform(), {}});
  return graph;
}

const NormCase kNormCases[] = {
    {1, 2304, 768, DType::kBF16},
    {1, 64, 64, DType::kBF16, false, false, 1},
    {1, 3072, 768, DType::kF16, true, true, 4},
    {2, 96, 200, DType::kBF16, true, true},
    {3, 40, 56, DType::kF32, true, true, 3},
    {8, 2304, 768, DType::kBF16, true, true, 3},
    {8, 128, 768, DType::kF32, false, true},
    {5, 4800, 1600, DType::kBF16, true, true},
    {1, 128, 4100, DType::kF32, true, true},
    {1, 64, 8, DType::kF16, true, true},
    {1, 50257, 768, DType::kBF16, false, false, 1, true},
    {8, 100, 768, DType::kBF16, true, true, 2, true},
    {3, 50, 72, DType::kF32, false, true, 2, true},
};

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
    {1, 64, 8, true, DType::kBF16, true, true},  {1, 1600, 6400, false, DType::kBF16, true},
    {4, 1600, 1600, false, DType::kBF16, true},  {8, 6400, 1600, false, DType::kF16, true, true},
    {8, 1600, 6400, false, DType::kBF16},        {2, 200, 1000, false, DType::kF16, true},
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

TEST(ThinMatmul, TakesTheNormBeforeIt) {
  for (const NormCase& c : kNormCases) {
    Graph graph = norm_graph(c);
    ASSERT_EQ(graph.nodes().size(), 1u) << print(graph);
    cuda::MatmulNode node = cuda::matmul_node(graph, graph.nodes()[0]);
    EXPECT_TRUE(node.form.prologue && cuda::thin_supports(node));
    expect_compiles(cuda::thin_matmul_source(node), {c.trans_b ? "multiply_rows" : "multiply_columns"},
                    one_architecture());
  }
}

// In 48 KiB of shared memory.
TEST(ThinMatmul, TakesNoMoreRowsThanABlockHolds) {
  for (const NormCase& c : {NormCase{8, 64, 4096, DType::kBF16}, {1, 64, 16384, DType::kF32}}) {
    Graph graph = norm_graph(c);
    EXPECT_EQ(graph.nodes().size(), 2u) << print(graph);
  }
}

// Near what static shared memory has room for: what can be a link compiles as one, whose rows are all awaited.
TEST(ThinMatmul, LinksThatFitCompile) {
  int links = 0;
  for (int64_t k : {640, 768, 832, 896, 1024, 1280, 1600, 2304, 2944})
    for (int64_t m : {1, 2, 4, 8})
      for (bool trans_b : {false, true}) {
        Graph graph = norm_graph({m, 1024, k, DType::kBF16, false, false, 2, trans_b, true});
        const Node& node = matmul_of(graph);
        cuda::MatmulNode matmul = cuda::matmul_node(graph, node);
        if (!matmul.form.prologue || !cuda::thin_can_chain(graph, node, matmul)) continue;
        ChainLink link;
        for (ValueId input : node.inputs) link.awaited.push_back(graph.producer(input) >= 0);
        EXPECT_EQ(std::count(link.awaited.begin(), link.awaited.end(), true), 2);
        expect_compiles(cuda::thin_matmul_source(matmul, {.early = true, .link = &link}),
                        {trans_b ? "multiply_rows" : "multiply_columns"}, one_architecture());
        ++links;
      }
  EXPECT_GT(links, 20);
}

// x, by a kernel or not, times w; `changes`: w has another value after it.
Graph early_graph(Argument::Kind kind, bool made, bool changes) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {1, 64}});
  ValueId w = graph.add_argument(kind, "w", {DType::kF32, {64, 64}});
  graph.add_result("y", matmul(g, reshape(g, made ? gelu(g, x) : x, {1, 1, 64}), w, false, false));
  if (changes) graph.add_update(w, add(g, w, w));
  run_passes(graph, PassStage::kStep, {cuda::nominal_platform(), {}});
  return graph;
}

// What the kernel before writes must not be read before that has ended.
TEST(ThinMatmul, ReadsEarlyOnlyWeightsThatAreOld) {
  using Kind = Argument::Kind;
  auto early = [](Kind kind, bool made, bool changes) {
    Graph graph = early_graph(kind, made, changes);
    const Node& node = matmul_of(graph);
    return cuda::reads_weights_early(graph, node, read_matmul(graph, node));
  };
  EXPECT_TRUE(early(Kind::kParameter, true, false));
  EXPECT_FALSE(early(Kind::kParameter, false, false));  // it may be the first kernel after what wrote them
  EXPECT_FALSE(early(Kind::kParameter, true, true));
  EXPECT_FALSE(early(Kind::kInput, true, false));
}

TEST(ThinMatmul, Compiles) {
  for (const ThinCase& c : kCases) {
    Graph graph = thin_graph(c);
    std::string source = cuda::thin_matmul_source(cuda::matmul_node(graph, matmul_of(graph)));
    expect_compiles(source, {c.trans_b ? "multiply_rows" : "multiply_columns"}, one_architecture());
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

TEST(GpuThinMatmul, WithANormMatchesTheInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const NormCase& c : kNormCases) {
    Graph graph = norm_graph(c);
    std::vector<HostTensor> arguments = random_arguments(graph);
    expect_matches_interpreter(graph, arguments);
    expect_deterministic(graph, arguments);
  }
}

// Weights that the kernel before the graph's first has changed.
TEST(GpuThinMatmul, ReadsNewWeights) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  constexpr int64_t kSize = 1024;
  Backend& backend = gpu_backend();
  TensorStore store(backend);
  Graph doubling, product;
  {
    GraphBuilder g(doubling);
    ValueId w = g.parameter("w", {DType::kF32, {kSize, kSize}});
    doubling.add_update(w, add(g, w, w));
  }
  {
    GraphBuilder g(product);
    ValueId x = g.state("x", {DType::kF32, {1, kSize}}), w = g.parameter("w", {DType::kF32, {kSize, kSize}});
    product.add_result("y", matmul(g, gelu(g, x), w, false, false));
  }
  for (Graph* graph : {&doubling, &product}) run_passes(*graph, PassStage::kStep, {cuda::nominal_platform(), {}});
  ASSERT_TRUE(cuda::reads_weights_early(product, matmul_of(product), read_matmul(product, matmul_of(product))));
  Program changes(make_plan(doubling, cuda::nominal_platform()), backend, store, {});
  Program multiplies(make_plan(product, cuda::nominal_platform()), backend, store, {});
  std::vector<float> x(kSize, 3.0f), w(kSize * kSize, 1.0f), y(kSize);
  store.write("x", x.data(), kSize * 4);
  store.write("w", w.data(), kSize * kSize * 4);
  float first = 0;
  for (int run = 0; run < 50; ++run) {
    changes.run();
    multiplies.run();
    multiplies.get_result("y", y.data(), kSize * 4);
    if (run == 0) first = y[0];
    for (float v : y) ASSERT_EQ(v, std::ldexp(first, run)) << "run " << run;
  }
}

// Each row of `many` against `one` with that row alone; `rows` of the arguments are the matrices with a row for each.
void expect_same_alone(const Graph& many, const Graph& one, size_t rows) {
  std::vector<HostTensor> arguments = random_arguments(many);
  Interpretation together = run_on_gpu(many, arguments);
  for (int64_t row : {0, 7}) {
    auto take = [&](const HostTensor& from, HostTensor& to) {
      std::copy_n(from.data.begin() + row * to.size(), to.size(), to.data.begin());
    };
    std::vector<HostTensor> alone = arguments;
    for (size_t i = 0; i < rows; ++i) {
      alone[i] = random_arguments(one)[i];
      take(arguments[i], alone[i]);
    }
    Interpretation got = run_on_gpu(one, alone);
    for (size_t r = 0; r < got.results.size(); ++r) {
      HostTensor expected = got.results[r];
      take(together.results[r], expected);
      EXPECT_EQ(got.results[r].data, expected.data) << "row " << row << ", result " << r << " of\n" << print(one);
    }
  }
}

// A row has the same bits alone and among others.
TEST(GpuThinMatmul, RowsDoNotDependOnEachOther) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (ThinCase c : {ThinCase{8, 768, 768, false, DType::kBF16},
                     {8, 768, 768, true, DType::kBF16},
                     {8, 768, 3072, false, DType::kBF16}}) {
    Graph many = thin_graph(c);
    c.m = 1;
    expect_same_alone(many, thin_graph(c), 1);
  }
  for (NormCase c : {NormCase{8, 2304, 768, DType::kBF16, true, true}, {8, 128, 768, DType::kF32, true, true}}) {
    Graph many = norm_graph(c);
    c.m = 1;
    expect_same_alone(many, norm_graph(c), 2);
  }
}

}  // namespace
}  // namespace tokamak::test
