// multi_cast over many tensors on the GPU: the same bits as the interpreter.
#include "ops/multi_cast.h"
#include "graph/builder.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

#include <algorithm>

namespace tokamak::test {
namespace {

// Sizes around vectors, pieces and blocks; f32, or types in turn.
Graph cast_graph(int tensors, DType to, bool mixed, std::vector<int64_t> joins = {}) {
  constexpr int64_t kSizes[] = {1, 3, 4, 17, 1000, 16383, 16384, 16385, 32768, 40001, 7, 100003};
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  Graph graph;
  GraphBuilder g(graph);
  ValueIds inputs;
  for (int i = 0; i < tensors; ++i) {
    ValueType type{mixed ? kTypes[i % 3] : DType::kF32, {kSizes[size_t(i) % std::size(kSizes)]}};
    inputs.push_back(g.input("x" + std::to_string(i), type));
  }
  ValueIds outputs = multi_cast(g, inputs, to, std::move(joins));
  for (size_t i = 0; i < outputs.size(); ++i) graph.add_result("y" + std::to_string(i), outputs[i]);
  return graph;
}

TEST(GpuMultiCast, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType to : {DType::kBF16, DType::kF16, DType::kF32})
    for (bool mixed : {false, true})
      for (int tensors : {1, 12, 150, 300}) {
        Graph graph = cast_graph(tensors, to, mixed);
        expect_matches_interpreter(graph, random_arguments(graph), kExact);
      }
}

// Behind an odd length the next begins between vectors.
TEST(GpuMultiCast, PutsTensorsSideBySide) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType to : {DType::kBF16, DType::kF16, DType::kF32})
    for (bool mixed : {false, true}) {
      std::vector<int64_t> joins;
      for (int made = 0; made < 150; made += int(joins.back())) joins.push_back(std::min(1 + made % 4, 150 - made));
      Graph graph = cast_graph(150, to, mixed, joins);
      expect_matches_interpreter(graph, random_arguments(graph), kExact);
    }
}

TEST(GpuMultiCast, KeepsInfinityAndNan) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (DType to : {DType::kBF16, DType::kF16}) {
    Graph graph = cast_graph(12, to, false);
    std::vector<HostTensor> arguments = random_arguments(graph);
    arguments[0][0] = NAN;              // beside the vectors
    arguments[11][5] = HUGE_VAL;        // in one
    arguments[11][100002] = -HUGE_VAL;  // after them
    arguments[8][32767] = float(1e38);  // too large for f16
    expect_matches_interpreter(graph, arguments, kExact);
  }
}

TEST(GpuMultiCast, RepeatsWhenRecorded) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = cast_graph(150, DType::kBF16, false);
  expect_same_when_recorded(graph, random_arguments(graph));
}

}  // namespace
}  // namespace tokamak::test
