// Nodes with effects in front of every pass that drops, merges, repeats or moves nodes.
#include "base/error.h"
#include "passes/apply_recompute.h"
#include "passes/choose_recompute.h"
#include "passes/chunked_classifier.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_code.h"
#include "passes/fuse.h"
#include "tests/support/graph_text.h"
#include "tests/support/note_op.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

TEST(Effects, AreNotDead) {
  Graph graph = parse_with_notes(R"(graph g {
    input x = %0 : f32[2]
    %1 = exp(%0) : f32[2]
    %2 = note(%1) {id=1, on="a"} : f32[2]
    %3 = neg(%2) : f32[2]
    result y = %0
  })");
  EXPECT_TRUE(eliminate_dead_code(graph, {}));
  EXPECT_EQ(count_ops(graph, "note"), 1);
  EXPECT_EQ(count_ops(graph, "exp"), 1) << "which it reads";
  EXPECT_EQ(count_ops(graph, "neg"), 0);
}

TEST(Effects, AreNoDuplicates) {
  Graph graph = parse_with_notes(R"(graph g {
    input x = %0 : f32[2]
    %1 = note(%0) {id=1, on="a"} : f32[2]
    %2 = note(%0) {id=1, on="a"} : f32[2]
    result y = %1
    result z = %2
  })");
  EXPECT_FALSE(eliminate_common_subexpressions(graph, {}));
}

// What is made of it may be computed again.
constexpr const char* kSaved = R"(graph g {
  input x = %0 : f32[1024]
  %1 = tanh(%0) #recompute : f32[1024]
  %2 = note(%1) {id=1, on="a"} #recompute : f32[1024]
  %3 = exp(%2) #recompute : f32[1024]
  %4 = neg(%3) : f32[1024]
  %5 = mul(%4, %4) #backward : f32[1024]
  %6 = mul(%3, %5) #backward : f32[1024]
  result y = %4
  result z = %6
})";

TEST(Effects, AreNotComputedAgain) {
  Graph graph = parse_with_notes(kSaved);
  EXPECT_TRUE(apply_recompute(graph, {}));
  verify(graph);
  EXPECT_EQ(count_ops(graph, "note"), 1) << print(graph);
  EXPECT_EQ(count_ops(graph, "tanh"), 1) << "which only the note reads";
  EXPECT_EQ(count_ops(graph, "exp"), 2);
}

TEST(Effects, AreNotChosenToBeComputedAgain) {
  Graph graph = parse_with_notes(R"(graph g {
    input x = %0 : f32[1024]
    input s = %1 : f32[1]
    %2 = note(%1) {id=1, on="a"} : f32[1]
    %3 = mul(%0, %2) : f32[1024]
    %4 = exp(%3) : f32[1024]
    %5 = tanh(%4) : f32[1024]
    %6 = mul(%5, %5) #backward : f32[1024]
    %7 = exp(%6) #backward : f32[1024]
    %8 = mul(%7, %6) #backward : f32[1024]
    %9 = mul(%8, %3) #backward : f32[1024]
    result y = %5
    result z = %9
  })");
  PassContext context;
  context.options.memory_budget_gib = 1e-9;
  EXPECT_TRUE(choose_recompute(graph, context));
  for (const Node& node : graph.nodes())
    EXPECT_EQ(node.recompute, node.phase == Phase::kForward && node.op->name == "mul") << print(graph, node);
}

// The classifier would need the gradient of its losses before the loss, and with it the second note before the first.
TEST(Effects, AreNotMovedBeforeTheLoss) {
  std::string text = R"(graph g {
    input x = %0 : f32[6,3]
    input w = %1 : f32[5,3]
    input targets = %2 : i32[6]
    state scale = %3 : f32[]
    %4 = matmul(%0, %1) {trans_a=false, trans_b=true} : f32[6,5]
    %5, %6 = cross_entropy(%4, %2) {classes=4} : f32[6], f32[6]
    %7 = note(%5) {id=1, on="a"} : f32[6]
    %8 = constant() {dtype="f32", shape=[6], value=0.25} #backward : f32[6]
    %9 = NOTE #backward : f32[6]
    %10 = cross_entropy_grad(%4, %2, %6, %9) {classes=4} #backward : f32[6,5]
    %11 = matmul(%10, %1) {trans_a=false, trans_b=false} #backward : f32[6,3]
    %12 = matmul(%10, %0) {trans_a=true, trans_b=false} #backward : f32[5,3]
    result losses = %7
    result dx = %11
    result dw = %12
  })";
  auto fires = [&](const std::string& node) {
    std::string with = text;
    Graph graph = parse_with_notes(with.replace(with.find("NOTE"), 4, node));
    return chunked_classifier(graph, {});
  };
  EXPECT_TRUE(fires("neg(%8)"));
  EXPECT_FALSE(fires("note(%8) {id=2, on=\"a\"}"));
}

TEST(Effects, StayBetweenGroups) {
  Graph graph = parse_with_notes(R"(graph g {
    input x = %0 : f32[4,4]
    %1 = exp(%0) : f32[4,4]
    %2 = note(%1) {id=1, on="a"} : f32[4,4]
    %3 = neg(%1) : f32[4,4]
    %4 = note(%3) {id=2, on="a"} : f32[4,4]
    result y = %3
  })");
  run_passes(graph, PassStage::kStep, {});
  std::vector<int64_t> ids;
  for (const Node& node : graph.nodes())
    if (node.op == &note_op) ids.push_back(node.attrs.get_int("id"));
  EXPECT_EQ(ids, (std::vector<int64_t>{1, 2})) << print(graph);
  EXPECT_EQ(count_ops(graph, "flat"), 1) << "of both pointwise nodes\n" << print(graph);
}

// What no pass may do is seen after each.
TEST(Effects, AreComparedAfterEveryPass) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {2}});
  add_note(g, x, 0);
  auto empties = [](Graph& graph, const PassContext&) {
    graph = Graph("empty");
    return true;
  };
  Pass bad{"empties", PassStage::kRewrite, Numerics::kExact, Effects::kKept, {}, empties, {}};
  EXPECT_THROW(run_pass(bad, graph, {}), InternalError);
  Graph pure("g");
  EXPECT_TRUE(run_pass(bad, pure, {}));
}

TEST(Effects, AreListedByWhatTheyActOn) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {2}});
  for (const char* on : {"a", "b", "a"}) x = add_note(g, x, 0, on);
  auto effects = effects_of(graph);
  EXPECT_EQ(effects["a"].size(), 2u);
  EXPECT_EQ(effects["b"].size(), 1u);
  EXPECT_EQ(effects.size(), 2u);
}

}  // namespace
}  // namespace tokamak::test
