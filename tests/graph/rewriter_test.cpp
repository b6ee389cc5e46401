#include "graph/rewriter.h"

#include "base/error.h"
#include "ops/pointwise.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr std::string_view kText = R"(graph g {
  input x = %0 : f32[2]
  param w = %1 : f32[2]
  %2 = sub(%0, %1) #backward #recompute : f32[2]
  %3 = exp(%2) : f32[2]
  result y = %3
  update %1 = %2
}
)";

TEST(Rewriter, CopiesEverything) {
  Graph graph = test::parse(kText);
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  EXPECT_EQ(print(rewriter.finish()), kText);
}

// What stands for a node belongs to its phase and carries its decisions, unasked.
TEST(Rewriter, ReplacesValuesInReadersResultsAndUpdates) {
  Graph graph = test::parse(kText);
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op != &op::sub) {
      rewriter.copy(node);
      continue;
    }
    GraphBuilder& g = rewriter.in_place_of(node);
    rewriter.replace(node.outputs[0], add(g, rewriter.map(node.inputs[0]), neg(g, rewriter.map(node.inputs[1]))));
  }
  Graph rewritten = rewriter.finish();
  verify(rewritten);
  EXPECT_EQ(print(rewritten), R"(graph g {
  input x = %0 : f32[2]
  param w = %1 : f32[2]
  %2 = neg(%1) #backward #recompute : f32[2]
  %3 = add(%0, %2) #backward #recompute : f32[2]
  %4 = exp(%3) : f32[2]
  result y = %4
  update %1 = %3
}
)");
}

TEST(Rewriter, RefusesToMapWhatWasLeftOut) {
  Graph graph = test::parse(kText);
  Rewriter rewriter(graph);
  EXPECT_THROW(rewriter.copy(graph.nodes()[1]), InternalError);
  EXPECT_EQ(rewriter.map(kNoValue), kNoValue);
}

TEST(Rewriter, ChangesNodesWhereTheyStand) {
  Graph graph = test::parse(kText);
  auto to_update = [](Node& node) {
    return node.op == &op::exp && std::exchange(node.phase, Phase::kUpdate) != Phase::kUpdate;
  };
  EXPECT_TRUE(change_nodes(graph, to_update));
  EXPECT_EQ(graph.nodes()[0].phase, Phase::kBackward);
  EXPECT_EQ(graph.nodes()[1].phase, Phase::kUpdate);
  EXPECT_FALSE(change_nodes(graph, to_update)) << "changed twice";
}

TEST(InlineGraph, PutsInputsForArguments) {
  Graph body = test::parse(kText), graph("outer");
  GraphBuilder g(graph);
  ValueId a = g.input("a", {DType::kF32, {2}});
  ValueIds results = inline_graph(g, body, ValueIds{a, a});
  ASSERT_EQ(results.size(), 1u);
  graph.add_result("r", results[0]);
  EXPECT_EQ(print(graph), R"(graph outer {
  input a = %0 : f32[2]
  %1 = sub(%0, %0) : f32[2]
  %2 = exp(%1) : f32[2]
  result r = %2
}
)");
  EXPECT_THROW(inline_graph(g, body, ValueIds{a}), InternalError);
}

}  // namespace
}  // namespace tokamak
