#include "base/error.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "ops/group.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "tests/support/graph_text.h"
#include "tests/support/note_op.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// A graph that is right: y = exp(-x).
struct Chain {
  Graph graph{"chain"};
  ValueId x, negative, y;

  Chain() {
    GraphBuilder g(graph);
    x = g.input("x", {DType::kF32, {2, 3}});
    negative = neg(g, x);
    y = exp(g, negative);
    graph.add_result("y", y);
  }
};

void expect_rejected(const Graph& graph, const std::string& piece) {
  try {
    verify(graph);
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
    return;
  }
  ADD_FAILURE() << "verify() accepted what should fail with: " << piece;
}

Node node_of(const OpDef& op, ValueIds inputs, Attrs attrs = {}) {
  Node node;
  node.op = &op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  return node;
}

TEST(Verify, AcceptsAGoodGraph) { EXPECT_NO_THROW(verify(Chain().graph)); }

TEST(Verify, RejectsEffectsInABodyAndInWhatPassesTakeApart) {
  Graph graph("outer");
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {2, 3}});
  auto body = std::make_shared<Graph>("body");
  GraphBuilder inner(*body);
  body->add_result("y", test::add_note(inner, inner.input("a0", {DType::kF32, {2, 3}}), 1));
  g.add(op::flat, {x}, {}, body);
  expect_rejected(graph, "[note] has effects and stands in a body");

  OpDef pointwise = test::note_op;
  pointwise.fusion = Fusion::kPointwise;
  Chain c;
  c.graph.add_node(node_of(pointwise, {c.x}, {{"id", int64_t(1)}, {"on", std::string("a")}}), {{DType::kF32, {2, 3}}});
  expect_rejected(c.graph, "[note] has effects and is not opaque");
}

TEST(Verify, RejectsAnOperandBeforeItsDefinition) {
  Chain c;
  c.graph.add_node(node_of(op::neg, {c.y + 1}), {{DType::kF32, {2, 3}}});
  expect_rejected(c.graph, "[neg] reads %3 before it is defined");
}

TEST(Verify, RejectsAnOutputTypeThatIsNotInferred) {
  Chain c;
  c.graph.add_node(node_of(op::neg, {c.x}), {{DType::kF32, {3, 2}}});
  expect_rejected(c.graph, "[neg] infers f32[2,3]");
  Chain d;
  d.graph.add_node(node_of(op::neg, {d.x}), {{DType::kF32, {2, 3}}, {DType::kF32, {2, 3}}});
  expect_rejected(d.graph, "[neg] infers 1 outputs, the node has 2");
}

TEST(Verify, RejectsUnknownAndMissingAttributes) {
  Chain c;
  c.graph.add_node(node_of(op::neg, {c.x}, {{"speed", 1.0}}), {{DType::kF32, {2, 3}}});
  expect_rejected(c.graph, "[neg] does not declare the attribute 'speed'");
  Chain d;
  d.graph.add_node(node_of(op::reduce_sum, {d.x}, {{"keep", true}}), {{DType::kF32, {2, 3}}});
  expect_rejected(d.graph, "[reduce_sum] lacks the attribute 'dims'");
}

TEST(Verify, RejectsWrongUpdates) {
  Chain c;
  c.graph.add_update(c.x, c.y);
  expect_rejected(c.graph, "an update must name a parameter or a state");
  Chain d;
  ValueId state = d.graph.add_argument(Argument::Kind::kState, "s", {DType::kF32, {3, 2}});
  d.graph.add_update(state, d.y);
  expect_rejected(d.graph, "the update of 's' has type f32[2,3], expected f32[3,2]");
}

TEST(Verify, RejectsLayoutsOfAnotherKindOrShape) {
  Chain c;
  c.graph.add_argument(Argument::Kind::kState, "s", {DType::kF32, {2}}, {Role::kVector, "", {2}});
  expect_rejected(c.graph, "argument 's' has the role of another kind of argument: vector");
  Chain d;
  d.graph.add_argument(Argument::Kind::kInput, "x", {DType::kF32, {2}}, {Role::kCache, "", {2}});
  expect_rejected(d.graph, "argument 'x' has the role of another kind of argument: cache");
  Chain e;
  e.graph.add_argument(Argument::Kind::kParameter, "w", {DType::kF32, {4, 2}}, {Role::kMatrix, "", {5, 2}});
  expect_rejected(e.graph, "argument 'w' is stored as [4,2], but is [5,2]");
}

TEST(Verify, RejectsABodyThatDoesNotFit) {
  auto body = std::make_shared<Graph>("body");
  GraphBuilder g(*body);
  body->add_result("r", neg(g, g.input("a", {DType::kF32, {6}})));
  Chain c;
  Node group = node_of(op::flat, {c.x}, {});
  group.body = body;
  c.graph.add_node(group, {{DType::kF32, {6}}});
  expect_rejected(c.graph, "[flat] input 0 is f32[2,3], its body expects f32[6]");
  Chain d;
  group.inputs = {};
  d.graph.add_node(group, {{DType::kF32, {6}}});
  expect_rejected(d.graph, "[flat] has 0 inputs and a body of 1 arguments");
}

TEST(FindUsers, ListsEachReaderOnce) {
  Graph graph = test::parse(
      "graph g { input x = %0 : f32[2] %1 = mul(%0, %0) : f32[2] %2 = add(%0, %1) : f32[2] result y = %2 }");
  auto users = find_users(graph);
  EXPECT_TRUE(std::ranges::equal(users[0], std::vector<int>{0, 1}));
  EXPECT_TRUE(std::ranges::equal(users[1], std::vector<int>{1}));
  EXPECT_TRUE(users[2].empty());
  EXPECT_EQ(find_escaping(graph), (std::vector<bool>{false, false, true}));
}

}  // namespace
}  // namespace tokamak
