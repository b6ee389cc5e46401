#include "backend/cuda/blocked_attention.h"
#include "backend/cuda/chain_compiler.h"
#include "backend/cuda/thin_matmul.h"
#include "compile/step_compiler.h"
#include "model/model.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tokamak::test {
namespace {

struct DecodeCase {
  int64_t rows;
  Precision precision;
  DType cache;
  int64_t context = 64, layers = 8;
};

Graph decode_step(const DecodeCase& c) {
  RunConfig config;
  config.model = {.layers = c.layers, .heads = 4, .width = 256, .context = c.context, .vocab = 301};
  config.train.batch = 1;
  config.compile.precision = c.precision;
  Platform platform = cuda::nominal_platform();
  return compile_generation(decode_graph(config.model, c.rows, c.cache), resolve(config, platform.target), platform)
      .plan.graph;
}

bool is_matmul(const Node& node) { return node.op->name.ends_with("matmul"); }

// And the last product, whose weights lie the other way.
TEST(CudaChain, HoldsTheLayersOfAStep) {
  for (int64_t rows : {1, 2}) {
    Graph graph = decode_step({rows, Precision::kBf16, DType::kBF16});
    std::optional<Chain> chain = find_chain(make_plan(graph, cuda::nominal_platform()),
                                            [&](const Node& node) { return cuda::can_chain(graph, node); });
    ASSERT_TRUE(chain) << print(graph);
    EXPECT_EQ(chain->links.size(), 8 * 5u + 1) << print(graph);
    for (const Node& node : graph.nodes())
      if (is_matmul(node) && cuda::can_chain(graph, node))
        EXPECT_TRUE(cuda::reads_weights_early(graph, node, read_matmul(graph, node))) << print(graph);
  }
}

TEST(CudaChain, SourcesOfLinksCompile) {
  Graph graph = decode_step({1, Precision::kBf16, DType::kBF16});
  std::set<std::pair<std::string, std::string>> products;  // function and source
  for (const Node& node : graph.nodes()) {
    if (!is_matmul(node) || !cuda::can_chain(graph, node)) continue;
    std::string function = read_matmul(graph, node).trans_b ? "multiply_rows" : "multiply_columns";
    for (bool awaits : {false, true}) {
      ChainLink link;
      for (ValueId input : node.inputs) link.awaited.push_back(awaits && graph.producer(input) >= 0);
      products.emplace(function,
                       cuda::thin_matmul_source(cuda::matmul_node(graph, node), {.early = true, .link = &link}));
    }
  }
  for (const auto& [function, source] : products) expect_compiles(source, {function}, one_architecture());
  for (bool awaits : {false, true}) {
    ChainLink link{.awaited = {awaits, false, false}};
    expect_compiles(cuda::attention_decode_source(DType::kBF16, DType::kBF16, 64, {.early = awaits, .link = &link}),
                    {"decode_one", "combine_splits"}, one_architecture());
  }
}

std::vector<HostTensor> decode_arguments(const Graph& graph, int64_t rows, int32_t position) {
  std::vector<HostTensor> arguments = random_arguments(graph, 5, 300);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = graph.arguments()[i].name;
    if (name == kNextPosition) arguments[i].data.assign(size_t(rows), position);
    if (name == kTokensDrawn) arguments[i].data.assign(size_t(rows), 0);
    if (name == "settings") arguments[i].data = {0.9, 50, 0.95};
  }
  return arguments;
}

TEST(GpuChain, HasTheBitsOfKernelsThatWait) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  if (!gpu_backend().chains()) GTEST_SKIP() << "links are for Hopper and later";
  for (DecodeCase c : {DecodeCase{1, Precision::kBf16, DType::kBF16},
                       {2, Precision::kFp16, DType::kF16},
                       {4, Precision::kBf16, DType::kBF16},
                       {1, Precision::kFp32, DType::kF32},
                       {1, Precision::kBf16, DType::kBF16, 1600},
                       {3, Precision::kBf16, DType::kBF16, 700, 12}}) {
    Graph graph = decode_step(c);
    for (bool record : {false, true}) {
      std::vector<HostTensor> arguments = decode_arguments(graph, c.rows, int32_t(c.context) - 60);
      constexpr int kSteps = 50;
      Interpretation apart = run_on_gpu(graph, arguments, kSteps, record);
      Interpretation chained = run_on_gpu(graph, arguments, kSteps, record, nullptr, true);
      for (size_t r = 0; r < apart.results.size(); ++r)
        EXPECT_EQ(chained.results[r].data, apart.results[r].data) << "result " << r << ", " << c.rows << " rows";
      for (size_t u = 0; u < apart.updates.size(); ++u)
        EXPECT_EQ(chained.updates[u].data, apart.updates[u].data) << "update " << u << ", " << c.rows << " rows";
    }
  }
}

// A NaN is no number that has not come yet.
TEST(GpuChain, EndsWhereAModelIsBroken) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  if (!gpu_backend().chains()) GTEST_SKIP() << "links are for Hopper and later";
  for (DecodeCase c : {DecodeCase{1, Precision::kBf16, DType::kBF16},
                       {2, Precision::kFp16, DType::kF16},
                       {1, Precision::kFp32, DType::kF32}}) {
    Graph graph = decode_step(c);
    for (double broken : {double(NAN), -double(NAN), double(INFINITY)}) {
      std::vector<HostTensor> arguments = decode_arguments(graph, c.rows, 3);
      for (size_t i = 0; i < arguments.size(); ++i)
        if (graph.arguments()[i].name == "h.2.mlp.c_fc.weight")
          arguments[i].data.assign(arguments[i].data.size(), broken);
      Interpretation run = run_on_gpu(graph, arguments, 3, true, nullptr, true);
      EXPECT_EQ(run.results[0].data, std::vector<double>(size_t(c.rows), -1)) << c.rows << " rows, " << broken;
    }
  }
}

}  // namespace
}  // namespace tokamak::test
