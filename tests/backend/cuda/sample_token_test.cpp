#include "ops/sample_token.h"
#include "backend/cuda/sample_token_kernel.h"
#include "graph/builder.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Graph sample_graph(int64_t B, int64_t V, int64_t vocab) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId logits = g.input("logits", {DType::kF32, {B, V}});
  SampledStep before{kNoValue, g.input("position", {DType::kI32, {B}}), g.input("drawn", {DType::kI32, {B}})};
  ValueId seeds = g.input("seeds", {DType::kI32, {B, 2}}), settings = g.input("settings", {DType::kF32, {3}});
  SampledStep next = sample_token(g, logits, before, seeds, settings, vocab, 1000);
  graph.add_result("token", next.token);
  graph.add_result("position", next.position);
  graph.add_result("drawn", next.drawn);
  return graph;
}

// Logits in steps of 1/4, so that many are equal, or all different.
std::vector<HostTensor> arguments_of(const Graph& graph, bool ties, std::vector<double> settings) {
  std::vector<HostTensor> arguments = random_arguments(graph, 3);
  for (double& x : arguments[0].data) x = float(ties ? std::floor(16 * x) / 4 - 30 : 8 * x - 60);
  for (int64_t b = 0; b < graph.shape(0)[0]; ++b) {
    arguments[1][b] = double(b), arguments[2][b] = double(3 * b + 1);
    arguments[3][2 * b] = double(b * 77 - 5), arguments[3][2 * b + 1] = double(b % 2);
  }
  arguments[4].data = std::move(settings);
  for (double& x : arguments[4].data) x = double(float(x));
  return arguments;
}

TEST(SampleTokenSource, Compiles) {
  Graph graph = sample_graph(2, 50304, 50257);
  for (bool shared : {false, true})
    expect_compiles(cuda::sample_token_source(graph, graph.nodes()[0], shared), {"sample_token"},
                    shared ? checked_architectures() : one_architecture());
}

TEST(GpuSampleToken, ChoosesWhatTheReferenceDoes) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (auto [V, vocab] : {std::pair<int64_t, int64_t>{50304, 50257}, {301, 301}, {90000, 90000}, {5, 1}}) {
    Graph graph = sample_graph(40, V, vocab);
    for (bool ties : {false, true})
      for (auto [temperature, top_k, top_p] : {std::tuple{0.0, 0.0, 1.0},
                                               {1.0, 0.0, 1.0},
                                               {0.8, 50.0, 1.0},
                                               {1.3, 0.0, 0.9},
                                               {0.7, 200.0, 0.6},
                                               {1e-30, 0.0, 1.0},
                                               {1.0, 1.0, 1.0},
                                               {0.9, 3000.0, 0.8},
                                               {1.0, 0.0, 1e-6}}) {
        std::vector<HostTensor> arguments = arguments_of(graph, ties, {temperature, top_k, top_p});
        SCOPED_TRACE(fmt::format("{} of {}, {} {} {}, ties {}", vocab, V, temperature, top_k, top_p, ties));
        expect_matches_interpreter(graph, arguments);
      }
  }
}

TEST(GpuSampleToken, HasNoTokenForBrokenLogits) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = sample_graph(4, 2000, 1990);
  std::vector<HostTensor> arguments = arguments_of(graph, false, {0.8, 50, 1});
  arguments[0][17] = NAN;
  arguments[0][2000 + 1800] = INFINITY;
  std::fill_n(arguments[0].data.begin() + 4000, 2000, -INFINITY);
  arguments[0][6000 + 1995] = NAN;  // behind the vocabulary
  expect_matches_interpreter(graph, arguments);
}

}  // namespace
}  // namespace tokamak::test
