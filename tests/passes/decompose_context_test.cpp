#include "passes/decompose_context.h"

#include "graph/builder.h"
#include "ops/context_attention.h"
#include "ops/interpret.h"
#include "tests/support/fake_kernels.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::count_ops;

// Forward and backward pass of rank 1 of 3, in bf16 as autocast leaves them.
Graph rank_graph(double dropout) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueId qkv = g.input("qkv", {DType::kBF16, {2, 4, 24}}), kv = g.input("kv", {DType::kBF16, {6, 4, 16}});
  ValueId rank = g.input("rank", {DType::kI32, {}}), dout = g.input("dout", {DType::kBF16, {2, 4, 8}});
  Attrs attrs{{"dropout", dropout}, {"heads", int64_t(2)}, {"scale", 0.5}, {"stream", int64_t(0)}};
  ValueIds in{qkv, kv, rank};
  if (dropout > 0) in.push_back(g.input("rng", {DType::kI32, {2}}));
  ValueIds out = g.add(op::context_attention, in, attrs);
  in.insert(in.begin() + 3, {out[0], out[1], dout});
  ValueIds grads = g.add(op::context_attention_grad, in, attrs);
  for (ValueId value : {out[0], out[1], grads[0], grads[1]}) graph.add_result("y" + std::to_string(value), value);
  return graph;
}

PassContext with_kernel(bool has_it) {
  PassContext context;
  context.kernels = test::fake_kernels({.has_kernel = [=](const Graph&, const Node&) { return has_it; }});
  return context;
}

TEST(DecomposeContext, WritesWhatHasNoKernelInParts) {
  Graph graph = rank_graph(0), parts = graph;
  EXPECT_TRUE(decompose_context(parts, with_kernel(false)));
  verify(parts);
  EXPECT_EQ(count_ops(parts, "context_attention") + count_ops(parts, "context_attention_grad"), 0);
  EXPECT_EQ(count_ops(parts, "attention"), 3);
  EXPECT_EQ(count_ops(parts, "attention_grad"), 3);
  std::vector<HostTensor> arguments = test::random_arguments(graph);
  arguments[2][0] = 1;
  for (int64_t row = 0; row < 8; ++row)  // the rank's own keys and values, as in its qkv
    for (int64_t c = 0; c < 16; ++c) arguments[1][(8 + row) * 16 + c] = arguments[0][row * 24 + 8 + c];
  auto expected = interpret(graph, arguments).results, got = interpret(parts, arguments).results;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(to_string(got[i].type), to_string(expected[i].type));
    EXPECT_LE(test::difference(got[i], expected[i]), 0.05) << "result " << i;
  }
}

TEST(DecomposeContext, LeavesWhatHasAKernelOrNoParts) {
  for (auto [dropout, has_it] : {std::pair{0.0, true}, {0.3, true}, {0.3, false}}) {
    Graph graph = rank_graph(dropout);
    std::string before = print(graph);
    EXPECT_FALSE(decompose_context(graph, with_kernel(has_it)));
    EXPECT_EQ(print(graph), before);
  }
}

}  // namespace
}  // namespace tokamak
