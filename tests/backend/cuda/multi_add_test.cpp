// multi_add over many tensors on the GPU: sums of two have the bits of the interpreter, which does not round between.
#include "ops/multi_add.h"
#include "graph/builder.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

namespace tokamak::test {
namespace {

// Sizes around vectors, pieces and blocks. In place, sums take the storage of the first terms, which are states.
Graph sums_graph(int sums, int terms, bool in_place) {
  constexpr int64_t kSizes[] = {1, 3, 4, 17, 1000, 16383, 16384, 16385, 32768, 40001, 7, 100003};
  Graph graph;
  GraphBuilder g(graph);
  std::vector<ValueIds> inputs{size_t(terms)};
  for (int term = 0; term < terms; ++term)
    for (int i = 0; i < sums; ++i) {
      ValueType type{DType::kF32, {kSizes[size_t(i) % std::size(kSizes)]}};
      std::string name = "x" + std::to_string(term) + "." + std::to_string(i);
      inputs[size_t(term)].push_back(in_place && term == 0 ? g.state(name, type, Role::kGradientSum)
                                                           : g.input(name, type));
    }
  ValueIds outputs = multi_add(g, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (in_place) graph.add_update(inputs[0][i], outputs[i]);
    if (!in_place) graph.add_result("y" + std::to_string(i), outputs[i]);
  }
  return graph;
}

TEST(GpuMultiAdd, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (bool in_place : {false, true})
    for (int terms : {2, 3, 5})
      for (int sums : {1, 12, 150}) {
        Graph graph = sums_graph(sums, terms, in_place);
        expect_matches_interpreter(graph, random_arguments(graph), terms == 2 ? kExact : kF32Tolerance);
      }
}

}  // namespace
}  // namespace tokamak::test
