// Rotary positions on the GPU against the interpreter, and their device code without one.
#include "ops/rotary.h"

#include "backend/cuda/rotary_kernels.h"
#include "graph/builder.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

namespace tokamak::test {
namespace {

struct Heads {
  int64_t queries, keys, width;
};
const Heads kHeads[] = {{1, 1, 2}, {4, 4, 64}, {6, 2, 128}, {8, 1, 6}, {3, 1, 8}, {2, 2, 24}};

// Results qkv and, with its gradient, dq, dk and dv.
Graph rotary_graph(const Heads& heads, DType dtype, bool own_positions) {
  const int64_t B = 2, T = 33;
  Graph graph;
  GraphBuilder g(graph);
  ValueId q = g.input("q", {dtype, {B, T, heads.queries * heads.width}});
  ValueId k = g.input("k", {dtype, {B, T, heads.keys * heads.width}});
  ValueId v = g.input("v", {dtype, {B, T, heads.keys * heads.width}});
  ValueId positions = g.input("positions", {DType::kI32, {own_positions ? B : 1, T}});
  ValueId qkv = rotary_qkv(g, q, k, v, positions, {.head_width = heads.width, .factor = 4, .original_context = 500});
  graph.add_result("qkv", qkv);
  Attrs attrs = graph.nodes().back().attrs;
  attrs.set("group", heads.queries / heads.keys);
  ValueId dqkv = g.input("dqkv", g.type(qkv));
  std::vector<ValueId> grads = g.add(op::rotary_qkv_grad, {dqkv, positions}, attrs);
  for (size_t i = 0; i < grads.size(); ++i) graph.add_result("grad" + std::to_string(i), grads[i]);
  return graph;
}

TEST(GpuRotary, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const Heads& heads : kHeads)
    for (bool own_positions : {false, true}) {
      Graph graph = rotary_graph(heads, DType::kF32, own_positions);
      expect_matches_interpreter(graph, random_arguments(graph, 3, 4000));
      Graph low = rotary_graph(heads, DType::kBF16, own_positions);
      expect_matches_interpreter(low, random_arguments(low, 3, 4000));
    }
}

TEST(RotarySource, Compiles) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Heads& heads : {kHeads[2], kHeads[3]}) {
      Graph graph = rotary_graph(heads, dtype, true);
      for (const Node& node : graph.nodes())
        expect_compiles(cuda::rotary_source(graph, node), {"rotary", "rotary_grad"}, checked_architectures());
    }
  }
}

}  // namespace
}  // namespace tokamak::test
