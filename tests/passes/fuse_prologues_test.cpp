#include "passes/fuse_prologues.h"

#include "graph/builder.h"
#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "passes/form_groups.h"
#include "passes/fuse.h"
#include "tests/support/fake_kernels.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

struct NormedMatmul {
  bool stored = false;       // the sum before the norm is a result
  bool read_twice = false;   // the norm is read by another node too
  bool as_right = false;     // it is the right operand
  bool read_before = false;  // the sum is read before the matmul, by what is no group
  bool reshaped = false;     // the matmul reads the norm of (2, 4, 8) as (8, 8)
};

// layer_norm(x + r) w + bias; grouped and fused.
Graph normed(const NormedMatmul& c, const PassContext& context) {
  Graph graph("g");
  GraphBuilder g(graph);
  Shape shape = c.reshaped ? Shape{2, 4, 8} : Shape{8, 8};
  ValueId x = g.input("x", {DType::kF32, shape}), r = g.input("r", {DType::kF32, shape});
  ValueId gain = g.parameter("gain", {DType::kF32, {8}}), shift = g.parameter("shift", {DType::kF32, {8}});
  ValueId w = g.parameter("w", {DType::kF32, {8, 8}}), bias = g.parameter("bias", {DType::kF32, {8}});
  ValueId sum = add(g, x, r), y = layer_norm(g, sum, gain, shift, 1e-5);
  if (c.reshaped) y = reshape(g, y, {8, 8});
  if (c.read_before) graph.add_result("p", matmul(g, w, sum, false, false));
  ValueId product = c.as_right ? matmul(g, w, y, false, false) : matmul(g, y, w, false, false);
  graph.add_result("z", add(g, product, bias));
  if (c.stored) graph.add_result("s", sum);
  if (c.read_twice) graph.add_result("t", matmul(g, w, y, false, false));
  form_groups(graph, context);
  fuse(graph, context);
  return graph;
}

PassContext context_of() {
  PassContext context;
  context.target.matmul_prologue = true;
  return context;
}

TEST(FusePrologues, ANormWithTheSumBeforeIt) {
  for (bool stored : {false, true}) {
    PassContext context = context_of();
    Graph before = normed({.stored = stored}, context), after = before;
    ASSERT_EQ(test::count_ops(before, "row"), 1);
    ASSERT_TRUE(fuse_prologues(after, context));
    verify(after);
    ASSERT_EQ(after.nodes().size(), 1u) << print(after);
    MatmulForm form = read_matmul(after, after.nodes()[0]);
    ASSERT_TRUE(form.prologue);
    EXPECT_EQ(form.a, -1);
    EXPECT_GE(form.bias, 0);
    EXPECT_EQ(form.prologue->inputs.size(), 4u);
    EXPECT_EQ(form.prologue->outputs.size(), stored ? 2u : 1u);
    EXPECT_EQ(print(test::parse(print(after))), print(after));
    test::expect_same_meaning(before, after);
    EXPECT_FALSE(fuse_prologues(after, context));
  }
}

void expect_unchanged(const NormedMatmul& c, PassContext context = context_of()) {
  Graph graph = normed(c, context);
  std::string before = print(graph);
  EXPECT_FALSE(fuse_prologues(graph, context));
  EXPECT_EQ(print(graph), before);
}

TEST(FusePrologues, ANormInAnotherShape) {
  PassContext context = context_of();
  Graph before = normed({.stored = true, .reshaped = true}, context), after = before;
  ASSERT_TRUE(fuse_prologues(after, context));
  verify(after);
  ASSERT_EQ(after.nodes().size(), 1u) << print(after);
  test::expect_same_meaning(before, after);
  expect_unchanged({.read_twice = true, .reshaped = true});
}

TEST(FusePrologues, NotOfWhatOthersRead) {
  expect_unchanged({.read_twice = true});
  expect_unchanged({.as_right = true});
}

// The group would have to move behind a reader of what else it makes.
TEST(FusePrologues, NotPastAReader) { expect_unchanged({.read_before = true}); }

TEST(FusePrologues, OnlyWithAKernel) {
  PassContext context = context_of();
  context.kernels = test::fake_kernels(
      {.takes_matmul = [](const Graph& graph, const Node& group) { return !read_matmul(graph, group).prologue; }});
  expect_unchanged({}, context);
}

}  // namespace
}  // namespace tokamak
