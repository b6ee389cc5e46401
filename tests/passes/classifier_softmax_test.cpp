#include "passes/classifier_softmax.h"

#include "graph/builder.h"
#include "ops/cross_entropy.h"
#include "ops/group.h"
#include "ops/group_form.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

Graph plain_graph(int64_t rows, int64_t vocab, int64_t classes, DType dtype, const Softcap& softcap) {
  Graph graph("plain");
  GraphBuilder g(graph);
  ValueId logits = g.input("logits", {dtype, {rows, vocab}}), targets = g.input("targets", {DType::kI32, {rows}});
  ValueId dloss = g.input("dloss", {DType::kF32, {rows}});
  Attrs attrs{{"classes", classes}};
  set_softcap(attrs, softcap);
  ValueIds loss = g.add(op::cross_entropy, {logits, targets}, attrs);
  graph.add_result("losses", loss[0]);
  graph.add_result("dlogits", g.add1(op::cross_entropy_grad, {logits, targets, loss[1], dloss}, attrs));
  return graph;
}

TEST(ClassifierSoftmax, IsOneRowGroupOfTheSameMeaning) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    for (const auto& [classes, softcap] : {std::pair<int64_t, Softcap>{7, {}}, {9, {}}, {7, {3}}, {9, {2, 1, 4}}}) {
      Graph graph = classifier_softmax(5, 9, classes, dtype, softcap);
      verify(graph);
      ASSERT_EQ(graph.nodes().size(), 1u);
      const Node& group = graph.nodes()[0];
      GroupSpace space = group_space(group);
      EXPECT_EQ(group.op, &op::row);
      EXPECT_EQ((Shape{space.rows, space.cols}), (Shape{5, 9}));
      ASSERT_EQ(group.outputs.size(), 2u) << print(graph);
      EXPECT_EQ(graph.results()[0].value, group.outputs[0]);
      EXPECT_EQ(graph.results()[1].value, group.outputs[1]);
      EXPECT_EQ(graph.type(group.outputs[0]), (ValueType{DType::kF32, {5}}));
      EXPECT_EQ(graph.type(group.outputs[1]), (ValueType{dtype, {5, 9}}));
      test::expect_same_meaning(plain_graph(5, 9, classes, dtype, softcap), graph, dtype == DType::kF32 ? 1e-12 : 1e-2);
    }
}

}  // namespace
}  // namespace tokamak
