// float8_weights over many matrices on the GPU, the same bits as the interpreter, and float8_scales.
#include "ops/float8_weights.h"
#include "backend/cuda/float8_scales_kernel.h"
#include "backend/cuda/float8_weights_kernel.h"
#include "graph/builder.h"
#include "ops/float8_scales.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

namespace tokamak::test {
namespace {

// Less than a tile and a piece, whole ones, parts of them, many pieces; types and copies in turn.
Graph weights_graph(int weights, bool longest = false) {
  constexpr std::array<std::array<int64_t, 2>, 8> kSizes{
      {{16, 16}, {128, 128}, {144, 272}, {256, 384}, {16, 4000}, {2064, 48}, {304, 400}, {768, 2304}}};
  Graph graph;
  GraphBuilder g(graph);
  ValueIds inputs;
  std::vector<StoredCopies> stored;
  for (int i = 0; i < weights; ++i) {
    auto [rows, columns] = kSizes[size_t(i) % kSizes.size()];
    DType dtype = (i + i / 8) % 2 == 0 ? DType::kF32 : DType::kBF16;
    inputs.push_back(g.input("w" + std::to_string(i), {dtype, {rows, columns}}));
    stored.push_back({.plain = i % 3 != 1, .turned = i % 3 != 0, .longest = longest && i % 4 != 1});
  }
  for (const Float8Weight& weight : float8_weights(g, inputs, stored))
    for (ValueId made : {weight.plain, weight.turned, weight.scale, weight.longest})
      if (made != kNoValue) graph.add_result("y" + std::to_string(graph.results().size()), made);
  return graph;
}

TEST(Float8WeightsSource, Compiles) {
  expect_compiles(cuda::float8_weights_source(), {"largest_of_weights", "cast_weights", "longest_columns"},
                  one_architecture());
}

TEST(Float8ScalesSource, Compiles) {
  expect_compiles(cuda::float8_scales_source(), {"float8_scales"}, checked_architectures());
}

// Of norms and of products, with and without biases.
TEST(GpuFloat8Scales, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph;
  GraphBuilder g(graph);
  std::vector<Float8Bound> bounds;
  for (int i = 0; i < 100; ++i) {
    auto input = [&](const char* name, DType dtype, Shape shape) {
      return g.input(name + std::to_string(i), {dtype, std::move(shape)});
    };
    Float8Bound& bound = bounds.emplace_back(Float8Bound{.width = 7 + 97 * i});
    bound.gain = input("gain", i % 5 == 0 ? DType::kF16 : DType::kF32, {bound.width});
    if (i % 2 == 1) bound.bias = input("bias", DType::kF32, {bound.width});
    if (i % 3 > 0) bound.column = input("column", DType::kF32, {});
    if (i % 3 > 1) bound.column_bias = input("column_bias", DType::kBF16, {4 * bound.width});
  }
  for (const Float8Scale& scale : float8_scales(g, bounds))
    for (ValueId made : {scale.scale, scale.inverse})
      graph.add_result("y" + std::to_string(graph.results().size()), made);
  expect_matches_interpreter(graph, random_arguments(graph), kF32Tolerance);
}

TEST(GpuFloat8Weights, EqualsInterpreter) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  for (int weights : {1, 8, 20, 150}) {
    Graph graph = weights_graph(weights);
    expect_matches_interpreter(graph, random_arguments(graph), kExact);
  }
}

// Of a weight only the largest element, wherever it stands; a matrix of zeros; the one behind is not touched by it.
TEST(GpuFloat8Weights, FindsTheLargestOfEach) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  Graph graph = weights_graph(8);
  std::vector<HostTensor> arguments = random_arguments(graph);
  arguments[7][768 * 2304 - 1] = -1000;
  arguments[5][0] = 64;
  arguments[6][304 * 400 / 2 + 3] = HUGE_VAL;
  for (double& v : arguments[4].data) v = 0;
  expect_matches_interpreter(graph, arguments, kExact);
}

// Sums in f32; all else has the same bits with them.
TEST(GpuFloat8Weights, FindsTheLongestColumns) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  Graph graph = weights_graph(20, true);
  std::vector<HostTensor> arguments = random_arguments(graph);
  expect_matches_interpreter(graph, arguments, kF32Tolerance);
  expect_deterministic(graph, arguments);
}

TEST(GpuFloat8Weights, RepeatsWhenRecorded) {
  if (!has_hopper()) GTEST_SKIP() << kNoHopper;
  Graph graph = weights_graph(20);
  expect_same_when_recorded(graph, random_arguments(graph));
}

}  // namespace
}  // namespace tokamak::test
