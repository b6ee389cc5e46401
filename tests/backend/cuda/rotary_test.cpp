// Rotary positions on the GPU against the interpreter, and their device code without one.
#include "ops/rotary.h"

#include "ops/packed_rotary.h"

#include "backend/cuda/rotary_kernels.h"
#include "graph/builder.h"
#include "ops/pointwise.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/support/random_tensors.h"

#include <set>

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
  ValueIds grads = g.add(op::rotary_qkv_grad, {dqkv, positions}, attrs);
  for (size_t i = 0; i < grads.size(); ++i) graph.add_result("grad" + std::to_string(i), grads[i]);
  return graph;
}

// The same with q, k and v side by side, which are sums first: values that may be written over, unless they are kept.
Graph packed_graph(const Graph& apart, bool keeps) {
  Graph graph;
  GraphBuilder g(graph);
  auto sum = [&](const std::string& name, const ValueType& type) {
    return add(g, g.input(name, type), g.input(name + "2", type));
  };
  for (const Node& node : apart.nodes()) {
    RotaryDims d = rotary_dims(spec_of(apart, node));
    bool is_gradient = node.op == &op::rotary_qkv_grad;
    int64_t columns = is_gradient ? 3 * d.H * d.D : d.projected();
    ValueId from = sum(is_gradient ? "dqkv" : "packed", {apart.dtype(node.inputs[0]), {d.B, d.T, columns}});
    ValueId positions = g.input(is_gradient ? "rows" : "positions", apart.type(node.inputs.back()));
    if (keeps) graph.add_result(is_gradient ? "kept dqkv" : "kept", from);
    graph.add_result(is_gradient ? "grad" : "qkv", packed_rotary(g, apart, node, from, positions));
  }
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
      for (const Graph& packed : {packed_graph(graph, true), packed_graph(low, false)})
        expect_matches_interpreter(packed, random_arguments(packed, 3, 4000));
    }
}

TEST(RotarySource, Compiles) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (size_t i : {2, 3}) {
      Graph graph = rotary_graph(kHeads[i], dtype, true);
      std::set<std::string> texts;
      for (const Node& node : graph.nodes()) texts.insert(cuda::rotary_source(graph, node));
      Graph packed = packed_graph(graph, false);
      for (const Node& node : packed.nodes())
        if (dtype == DType::kBF16 && node.op->name.starts_with("packed"))
          texts.insert(cuda::rotary_source(packed, node));
      auto architectures = i == 2 ? checked_architectures() : one_architecture();
      for (const std::string& text : texts) expect_compiles(text, {"rotary", "rotary_grad"}, architectures);
    }
  }
}

}  // namespace
}  // namespace tokamak::test
