#include "ops/group_body.h"

#include "ops/group.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// A norm and dropout: edges, generators, reductions both ways.
constexpr std::string_view kRow = R"(graph g {
  input x = %0 : bf16[2,2,3]
  input gain = %1 : f32[3]
  input rng = %2 : i32[2]
  %3, %4, %5 = row(%0, %1, %2) : f32[2,2,3], f32[4], f32[3] {
    graph body {
      input a0 = %0 : bf16[2,2,3]
      input a1 = %1 : f32[3]
      input a2 = %2 : i32[2]
      %3 = reshape(%0) {shape=[4,3]} : bf16[4,3]
      %4 = reshape(%1) {shape=[1,3]} : f32[1,3]
      %5 = cast(%3) {to="f32"} : f32[4,3]
      %6 = reduce_max(%5) {dims=[1], keep=true} : f32[4,1]
      %7 = sub(%5, %6) : f32[4,3]
      %8 = mul(%7, %4) : f32[4,3]
      %9 = random_uniform(%2) {shape=[4,3], stream=5} : f32[4,3]
      %10 = iota() {dim=1, shape=[1,3]} : f32[1,3]
      %11 = constant() {dtype="f32", shape=[1,1], value=2.0} : f32[1,1]
      %12 = less(%10, %11) : f32[1,3]
      %13 = select(%12, %8, %9) : f32[4,3]
      %14 = reduce_sum(%13) {dims=[0], keep=true} : f32[1,3]
      %15 = reshape(%13) {shape=[2,2,3]} : f32[2,2,3]
      %16 = reshape(%6) {shape=[4]} : f32[4]
      %17 = reshape(%14) {shape=[3]} : f32[3]
      result r0 = %15
      result r1 = %16
      result r2 = %17
    }
  }
  result y = %3
})";

ValueTypes input_types(const Graph& graph, const Node& node) {
  ValueTypes types;
  for (ValueId input : node.inputs) types.push_back(graph.type(input));
  return types;
}

TEST(GroupBody, BecomesTheBodyThatItWasReadFrom) {
  Graph graph = test::parse(kRow);
  const Node& node = graph.nodes()[0];
  EXPECT_EQ(print(*make_body(read_group(node), input_types(graph, node))), print(*node.body));
}

TEST(GroupBody, KnowsWhatVariesAlongWhat) {
  Graph graph = test::parse(kRow);
  GroupBody group = read_group(graph.nodes()[0]);
  EXPECT_EQ(group.kind, &op::row);
  EXPECT_EQ(group.shape(group.values[0]), (Shape{4, 3}));
  EXPECT_EQ(group.inputs(), (ValueIds{0, 1, 2}));
  EXPECT_EQ(group.num_nodes(), 10);
  const GroupValue &largest = group.values[size_t(group.results[1].value)],
                   &sum = group.values[size_t(group.results[2].value)];
  EXPECT_TRUE(largest.reduces_cols() && largest.along_rows && !largest.along_cols);
  EXPECT_TRUE(sum.reduces_rows() && !sum.along_rows && sum.along_cols);
}

TEST(GroupBody, PruningDropsWhatNoResultNeeds) {
  Graph graph = test::parse(kRow);
  GroupBody group = read_group(graph.nodes()[0]);
  group.results.erase(group.results.begin());
  group.results.pop_back();
  group.prune();
  EXPECT_EQ(group.num_nodes(), 2);  // the cast and the maximum
  EXPECT_EQ(group.inputs(), ValueIds{0});
}

}  // namespace
}  // namespace tokamak
