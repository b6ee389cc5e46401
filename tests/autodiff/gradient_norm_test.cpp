#include "autodiff/gradient_norm.h"

#include <gtest/gtest.h>

#include "ops/reduce.h"
#include "tests/autodiff/run_graph.h"

namespace tokamak::test {
namespace {

TEST(NormPieces, AreManyWhereRanksMayCut) {
  NormPieces pieces{.most = 8, .others = 2};
  EXPECT_EQ(pieces.of(64), 16);
  EXPECT_EQ(pieces.of(12), 4) << "of 2 x 6, two for each";
  EXPECT_EQ(pieces.of(7), 1);
  EXPECT_EQ((NormPieces{.most = 4, .others = 3}.of(24)), 12);
  EXPECT_EQ((NormPieces{.most = 4, .others = 3}.of(16)), 4);
}

// The squares of these parameters' gradients, which are 1, 2, 3 and 4 in all elements.
double squares_of(const std::vector<std::string>& here) {
  Graph model, graph("squares");
  GraphBuilder of_model(model), g(graph);
  std::map<std::string, Shape> shapes = {{"a", {4, 2}}, {"b", {6}}, {"c", {4, 2}}, {"d", {4, 2}}};
  std::map<std::string, ValueId> grads;
  Values values;
  for (const auto& [name, shape] : shapes) {
    of_model.parameter(name, {DType::kF32, shape});
    if (std::find(here.begin(), here.end(), name) == here.end()) continue;
    grads[name] = g.input("grad." + name, {DType::kF32, shape});
    values["grad." + name] =
        HostTensor({DType::kF32, shape}, std::vector<double>(size_t(num_elements(shape)), 1 + name[0] - 'a'));
  }
  graph.add_result("squares", sum_squares_in_order(g, model, grads, {.most = 2}, {}));
  verify(graph);
  return run_graph(graph, values)[0][0];
}

TEST(GradientNorm, LeavesOutWhatOtherStagesHave) {
  EXPECT_EQ(squares_of({"a", "b", "c", "d"}), 8 * 1 + 6 * 4 + 8 * 9 + 8 * 16);
  EXPECT_EQ(squares_of({"c"}), 8 * 9);
  EXPECT_EQ(squares_of({"a", "d"}), 8 * 1 + 8 * 16);
  EXPECT_EQ(squares_of({"b"}), 6 * 4);
  EXPECT_EQ(squares_of({}), 0);
}

// Where other axes cut pieces, they may cut columns, too, and not those of all matrices alike.
TEST(GradientNorm, ColumnsThatMayBeCutAreNotAddedTogether) {
  auto sums = [](Role role, const NormPieces& pieces) {
    Graph model, graph("squares");
    GraphBuilder of_model(model), g(graph);
    std::map<std::string, ValueId> grads;
    for (const char* name : {"a", "b", "c"}) {
      of_model.parameter(name, {DType::kF32, {4, 8}}, role);
      grads[name] = g.input(name, {DType::kF32, {4, 8}});
    }
    sum_squares_in_order(g, model, grads, pieces, {});
    return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                         [](const Node& node) { return node.op == &op::sum_squares; });
  };
  EXPECT_EQ(sums(Role::kColumn, {.most = 2, .others = 2}), 3);
  EXPECT_EQ(sums(Role::kRow, {.most = 2, .others = 2}), 1);
  EXPECT_EQ(sums(Role::kColumn, {.most = 2, .others = 1}), 1);
}

}  // namespace
}  // namespace tokamak::test
