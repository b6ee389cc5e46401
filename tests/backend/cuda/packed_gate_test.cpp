// The gated unit of a matrix of gate and up on the GPU against the interpreter, and its device code without one.
#include "ops/packed_gate.h"

#include "backend/cuda/packed_gate_kernel.h"
#include "graph/builder.h"
#include "ops/pointwise.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

namespace tokamak::test {
namespace {

// Vectors of 16 bytes, of less, and of one element; more vectors than a block has, and rows that end within one.
const Shape kShapes[] = {{33, 2048}, {2, 100, 96}, {70, 20}, {9, 7}, {1, 1}, {300, 264}};

// Results y and dpacked. The matrix is a sum first: a value that may be written over, unless it is kept.
Graph gate_graph(const Shape& half, DType dtype, bool keeps) {
  Graph graph;
  GraphBuilder g(graph);
  ValueType type{dtype, half};
  ValueId dy = g.input("dy", type);
  type.shape.back() *= 2;
  ValueId packed = add(g, g.input("a", type), g.input("b", type));
  if (keeps) graph.add_result("packed", packed);
  graph.add_result("y", packed_gate(g, packed));
  graph.add_result("dpacked", packed_gate_grad(g, dy, packed));
  return graph;
}

TEST(GpuPackedGate, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const Shape& half : kShapes)
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
      for (bool keeps : {false, true}) {
        SCOPED_TRACE(to_string(ValueType{dtype, half}));
        Graph graph = gate_graph(half, dtype, keeps);
        expect_matches_interpreter(graph, random_arguments(graph, 3));
      }
}

TEST(PackedGateSource, Compiles) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    for (const Shape& half : {kShapes[0], kShapes[2], kShapes[3], Shape{1 << 20, 2048}}) {
      Graph graph = gate_graph(half, dtype, false);
      const Node& unit = graph.nodes()[1];
      std::string source = cuda::packed_gate_source(graph, unit);
      EXPECT_EQ(source, cuda::packed_gate_source(graph, graph.nodes()[2]));
      expect_compiles(source, {"packed_gate", "packed_gate_grad"},
                      dtype == DType::kBF16 ? checked_architectures() : one_architecture());
    }
}

// Of many elements, and of few, a place is counted in no more bits than it takes.
TEST(PackedGateSource, HasPlacesThatFit) {
  auto source = [](int64_t rows) {
    Graph graph = gate_graph({rows, 2048}, DType::kBF16, false);
    return cuda::packed_gate_source(graph, graph.nodes()[1]);
  };
  EXPECT_NE(source(1 << 18).find("using Index = uint32_t;"), std::string::npos);
  EXPECT_NE(source(1 << 20).find("using Index = uint64_t;"), std::string::npos);
}

}  // namespace
}  // namespace tokamak::test
