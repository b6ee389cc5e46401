#include "passes/form_groups.h"

#include "ops/group.h"
#include "ops/group_form.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <set>

namespace tokamak {
namespace {

using test::parse;

Graph grouped(std::string_view text) {
  Graph graph = parse(text);
  EXPECT_TRUE(form_groups(graph, {}));
  verify(graph);
  EXPECT_EQ(print(parse(print(graph))), print(graph));
  return graph;
}

TEST(FormGroups, WrapsAPointwiseOpWithABroadcast) {
  const char* before = R"(graph g {
    input x = %0 : f32[2,3,4]
    param b = %1 : f32[4]
    %2 = add(%0, %1) #backward : f32[2,3,4]
    result y = %2
  })";
  Graph after = grouped(before);
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2,3,4]
    param b = %1 : f32[4]
    %2 = flat(%0, %1) #backward : f32[2,3,4] {
      graph body {
        input a0 = %0 : f32[2,3,4]
        input a1 = %1 : f32[4]
        %2 = reshape(%0) {shape=[6,4]} : f32[6,4]
        %3 = reshape(%1) {shape=[1,4]} : f32[1,4]
        %4 = add(%2, %3) : f32[6,4]
        %5 = reshape(%4) {shape=[2,3,4]} : f32[2,3,4]
        result r0 = %5
      }
    }
    result y = %2
  })"));
  test::expect_same_meaning(parse(before), after);
}

TEST(FormGroups, LeavesOpaqueOpsAndViewsAlone) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2,3]
    input y = %1 : f32[3,4]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,4]
    %3 = reshape(%2) {shape=[8]} : f32[8]
    result z = %3
  })");
  std::string before = print(graph);
  EXPECT_FALSE(form_groups(graph, {}));
  EXPECT_EQ(print(graph), before);
}

TEST(FormGroups, LeavesWhatFitsNoTemplateAlone) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2,3,4]
    input y = %1 : f32[2,1,4]
    %2 = reduce_sum(%0) {dims=[1], keep=true} : f32[2,1,4]
    %3 = add(%0, %1) : f32[2,3,4]
    result a = %2
    result b = %3
  })");
  EXPECT_FALSE(form_groups(graph, {}));
}

// Blocks of a model repeat their nodes. What looks alike may still differ in which operands are equal, in attributes
// and in which outputs are read.
TEST(FormGroups, NodesAlikeShareABody) {
  const char* text = R"(graph g {
    input x = %0 : f32[6,4]
    input y = %1 : f32[6,4]
    param gain = %2 : f32[4]
    param bias = %3 : f32[4]
    %4 = mul(%0, %1) : f32[6,4]
    %5 = mul(%4, %0) : f32[6,4]
    %6 = mul(%5, %5) : f32[6,4]
    %7, %8, %9 = layer_norm(%6, %2, %3) {eps=1e-05} : f32[6,4], f32[6,1], f32[6,1]
    %10, %11, %12 = layer_norm(%7, %2, %3) {eps=1e-05} : f32[6,4], f32[6,1], f32[6,1]
    %13, %14, %15 = layer_norm(%10, %2, %3) {eps=0.25} : f32[6,4], f32[6,1], f32[6,1]
    result z = %13
    result mean = %11
  })";
  Graph graph = grouped(text);
  std::vector<const Graph*> bodies;
  for (const Node& node : graph.nodes()) bodies.push_back(node.body.get());
  ASSERT_EQ(bodies.size(), 6u);
  EXPECT_EQ(bodies[0], bodies[1]);
  EXPECT_EQ(std::set<const Graph*>(bodies.begin(), bodies.end()).size(), 5u);
  test::expect_same_meaning(parse(text), graph, 1e-12);
}

struct Case {
  const char* name;
  const OpDef* kind;
  int64_t rows, cols;
  const char* text;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class FormGroupsCase : public testing::TestWithParam<Case> {};

TEST_P(FormGroupsCase, HasTheKindAndTheMeaning) {
  const Case& c = GetParam();
  Graph before = parse(c.text), after = grouped(c.text);
  ASSERT_EQ(after.nodes().size(), 1u) << print(after);
  GroupSpace space = group_space(after.nodes()[0]);
  EXPECT_EQ(after.nodes()[0].op, c.kind);
  EXPECT_EQ(space.rows, c.rows);
  EXPECT_EQ(space.cols, c.cols);
  test::expect_same_meaning(before, after, 1e-12);
}

const Case kCases[] = {
    {"leading_broadcast", &op::flat, 2, 12, R"(graph g {
      input x = %0 : f32[2,3,4]
      input p = %1 : f32[3,4]
      %2 = add(%0, %1) : f32[2,3,4]
      result y = %2 })"},
    {"row_broadcast", &op::flat, 6, 4, R"(graph g {
      input x = %0 : f32[2,3,4]
      input p = %1 : f32[2,3,1]
      %2 = mul(%1, %0) : f32[2,3,4]
      result y = %2 })"},
    {"scalars", &op::flat, 1, 1, R"(graph g {
      input x = %0 : f32[]
      %1 = neg(%0) : f32[]
      result y = %1 })"},
    {"constant", &op::flat, 1, 3, R"(graph g {
      %0 = constant() {dtype="f32", shape=[3], value=2.5} : f32[3]
      result y = %0 })"},
    {"iota", &op::flat, 3, 4, R"(graph g {
      %0 = iota() {dim=0, shape=[3,4]} : f32[3,4]
      result y = %0 })"},
    {"iota_of_a_middle_dim", &op::flat, 6, 4, R"(graph g {
      %0 = iota() {dim=1, shape=[2,3,4]} : f32[2,3,4]
      result y = %0 })"},
    {"iota_with_a_period", &op::flat, 8, 3, R"(graph g {
      %0 = iota() {dim=1, period=2, shape=[2,4,3]} : f32[2,4,3]
      result y = %0 })"},
    {"dropout", &op::flat, 6, 4, R"(graph g {
      input x = %0 : f32[2,3,4]
      input rng = %1 : i32[2]
      %2 = dropout(%0, %1) {p=0.5, stream=3} : f32[2,3,4]
      result y = %2 })"},
    {"softmax", &op::row, 6, 4, R"(graph g {
      input x = %0 : f32[2,3,4]
      %1 = softmax(%0) : f32[2,3,4]
      result y = %1 })"},
    {"sum_of_all", &op::row, 1, 24, R"(graph g {
      input x = %0 : f32[2,3,4]
      %1 = reduce_sum(%0) {dims=[0,1,2], keep=false} : f32[]
      result y = %1 })"},
    {"sum_of_rows", &op::row, 2, 12, R"(graph g {
      input x = %0 : f32[2,3,4]
      %1 = reduce_sum(%0) {dims=[1,2], keep=false} : f32[2]
      result y = %1 })"},
    {"sum_of_columns", &op::column, 6, 4, R"(graph g {
      input x = %0 : f32[2,3,4]
      %1 = reduce_sum(%0) {dims=[0,1], keep=true} : f32[1,1,4]
      result y = %1 })"},
    {"layer_norm", &op::row, 6, 4, R"(graph g {
      input x = %0 : f32[2,3,4]
      param gain = %1 : f32[4]
      param bias = %2 : f32[4]
      %3, %4, %5 = layer_norm(%0, %1, %2) {eps=1e-05} : f32[2,3,4], f32[2,3,1], f32[2,3,1]
      result y = %3
      result rstd = %5 })"},
    {"layer_norm_grad_params", &op::column, 6, 4, R"(graph g {
      input dy = %0 : f32[2,3,4]
      input x = %1 : f32[2,3,4]
      input mean = %2 : f32[2,3,1]
      input rstd = %3 : f32[2,3,1]
      %4, %5 = layer_norm_grad_params(%0, %1, %2, %3) : f32[4], f32[4]
      result dgain = %4
      result dbias = %5 })"},
    {"cross_entropy", &op::row, 4, 4, R"(graph g {
      input x = %0 : f32[4,4]
      input targets = %1 : i32[4]
      %2, %3 = cross_entropy(%0, %1) {classes=3} : f32[4], f32[4]
      result lse = %3 })"},
    {"cross_entropy_grad", &op::flat, 3, 6, R"(graph g {
      input x = %0 : f32[3,6]
      input targets = %1 : i32[3]
      input lse = %2 : f32[3]
      input dloss = %3 : f32[3]
      %4 = cross_entropy_grad(%0, %1, %2, %3) {classes=5} : f32[3,6]
      result dx = %4 })"},
    {"adamw", &op::flat, 3, 4, R"(graph g {
      param w = %0 : f32[3,4]
      input g = %1 : f32[3,4]
      state m = %2 : f32[3,4]
      state v_positive = %3 : f32[3,4]
      input lr = %4 : f32[]
      input scale = %5 : f32[]
      input step_positive = %6 : f32[]
      %7, %8, %9 = adamw(%0, %1, %2, %3, %4, %5, %6) {beta1=0.9, beta2=0.95, decay=0.1, eps=1e-08} : f32[3,4], f32[3,4], f32[3,4]
      update %0 = %7
      update %2 = %8
      update %3 = %9 })"},
    {"reads_one_value_twice", &op::flat, 1, 4, R"(graph g {
      input x = %0 : f32[4]
      %1 = mul(%0, %0) : f32[4]
      result y = %1 })"},
};
INSTANTIATE_TEST_SUITE_P(Templates, FormGroupsCase, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tokamak
