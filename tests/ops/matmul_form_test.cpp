#include "ops/matmul_form.h"

#include "base/error.h"
#include "ops/pointwise.h"
#include "tests/support/graph_text.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Operands a (2, 3, 4), b (4, 5) and a third of its own type; `rest` begins after the matmul, which is %3.
Graph group_of(const std::string& third, const std::string& rest, const std::string& results = "bf16[2,3,5]",
               const std::string& values = "%3") {
  return test::parse(fmt::format(R"(graph g {{
    input a = %0 : bf16[2,3,4]
    input b = %1 : bf16[4,5]
    input c = %2 : {0}
    {3} = fused_matmul(%0, %1, %2) : {2} {{
      graph body {{
        input a0 = %0 : bf16[2,3,4]
        input a1 = %1 : bf16[4,5]
        input a2 = %2 : {0}
        %3 = matmul(%0, %1) {{trans_a=false, trans_b=false}} : bf16[2,3,5]
        {1}
      }}
    }}
    result y = %3
  }})",
                                 third, rest, results, values));
}

MatmulForm form_of(const Graph& graph) { return read_matmul(graph, graph.nodes()[0]); }

// Reading and making are inverse to each other.
void expect_round_trip(const Graph& graph) {
  const Node& node = graph.nodes()[0];
  ValueTypes types;
  for (ValueId input : node.inputs) types.push_back(graph.type(input));
  EXPECT_EQ(print(*make_body(form_of(graph), types)), print(*node.body));
}

TEST(MatmulForm, OfABias) {
  Graph graph = group_of("bf16[5]", "%4 = add(%3, %2) : bf16[2,3,5] result r0 = %4");
  MatmulForm form = form_of(graph);
  EXPECT_EQ(form.bias, 2);
  EXPECT_EQ(form.batch * form.m, 6);
  EXPECT_EQ(form.n, 5);
  EXPECT_EQ(form.k, 4);
  EXPECT_FALSE(form.function);
  expect_round_trip(graph);
}

// Formats and scales are the product's, whatever is done to it.
TEST(MatmulForm, KeepsFormatsAndScales) {
  Graph graph = test::parse(R"(graph g {
    input a = %0 : bf16[2,4]
    input b = %1 : f16[4,5]
    input sa = %2 : f32[]
    input sb = %3 : f32[]
    input c = %4 : f32[5]
    %5 = fused_matmul(%0, %1, %2, %3, %4) : f32[2,5] {
      graph body {
        input a0 = %0 : bf16[2,4]
        input a1 = %1 : f16[4,5]
        input a2 = %2 : f32[]
        input a3 = %3 : f32[]
        input a4 = %4 : f32[5]
        %5 = matmul(%0, %1, %2, %3) {accumulator="f16", result="f32", trans_a=false, trans_b=false} : f32[2,5]
        %6 = add(%5, %4) : f32[2,5]
        result r0 = %6
      }
    }
    result y = %5
  })");
  MatmulForm form = form_of(graph);
  EXPECT_EQ(form.formats, (MatmulFormats{NumberFormat::kBf16, NumberFormat::kF16, DType::kF16, DType::kF32}));
  EXPECT_EQ(form.scale_a, 2);
  EXPECT_EQ(form.scale_b, 3);
  EXPECT_EQ(form.bias, 4);
  expect_round_trip(graph);
}

TEST(MatmulForm, OfASumOntoAMatrix) {
  Graph graph =
      group_of("f32[2,3,5]", "%4 = cast(%3) {to=\"f32\"} : f32[2,3,5] %5 = add(%2, %4) : f32[2,3,5] result r0 = %5",
               "f32[2,3,5]");
  MatmulForm form = form_of(graph);
  EXPECT_EQ(form.addend, 2);
  EXPECT_EQ(form.output, DType::kF32);
  EXPECT_FALSE(form.function);
  expect_round_trip(graph);
}

TEST(MatmulForm, OfAFunctionOfTheSumThatIsStored) {
  Graph graph = group_of("bf16[5]", R"(
        %4 = add(%3, %2) : bf16[2,3,5]
        %5 = constant() {dtype="bf16", shape=[], value=0.0} : bf16[]
        %6 = maximum(%4, %5) : bf16[2,3,5]
        %7 = mul(%6, %6) : bf16[2,3,5]
        result r0 = %4
        result r1 = %7)",
                         "bf16[2,3,5], bf16[2,3,5]", "%3, %4");
  MatmulForm form = form_of(graph);
  EXPECT_EQ(form.bias, 2);
  EXPECT_EQ(form.argument, 0);
  EXPECT_EQ(form.y, 1);
  ASSERT_TRUE(form.function);
  EXPECT_EQ(form.function->num_nodes(), 3);
  EXPECT_EQ(form.function->inputs(), ValueIds{0});
  EXPECT_FALSE(form.applies(op::mul));
  expect_round_trip(graph);
}

TEST(MatmulForm, OfAFunctionOfAMatrixAndTheProductWithItsSums) {
  Graph graph = group_of("bf16[2,3,5]", R"(
        %4 = gelu_grad(%2, %3) : bf16[2,3,5]
        %5 = cast(%4) {to="f32"} : f32[2,3,5]
        %6 = reduce_sum(%5) {dims=[0,1], keep=true} : f32[1,1,5]
        %7 = reshape(%6) {shape=[5]} : f32[5]
        result r0 = %4
        result r1 = %7)",
                         "bf16[2,3,5], f32[5]", "%3, %4");
  MatmulForm form = form_of(graph);
  EXPECT_EQ(form.operand, 2);
  EXPECT_EQ(form.sums, 1);
  EXPECT_EQ(form.sums_shape, Shape{5});
  EXPECT_TRUE(form.applies(op::gelu_grad));
  expect_round_trip(graph);
}

// The product's left operand by a row group, whose sum is a result as well; `made` is that which is the operand.
Graph group_with_prologue(const std::string& made, const std::string& results) {
  return test::parse(fmt::format(R"(graph g {{
    input b = %0 : bf16[4,5]
    input x = %1 : bf16[3,4]
    input r = %2 : bf16[3,4]
    %3, %4 = fused_matmul(%0, %1, %2) : bf16[3,5], bf16[3,4] {{
      graph body {{
        input a0 = %0 : bf16[4,5]
        input a1 = %1 : bf16[3,4]
        input a2 = %2 : bf16[3,4]
        %3, %4 = row(%1, %2) : bf16[3,4], bf16[3,4] {{
          graph body {{
            input a0 = %0 : bf16[3,4]
            input a1 = %1 : bf16[3,4]
            %2 = add(%0, %1) : bf16[3,4]
            %3 = cast(%2) {{to="f32"}} : f32[3,4]
            %4 = reduce_sum(%3) {{dims=[1], keep=true}} : f32[3,1]
            %5 = sub(%3, %4) : f32[3,4]
            %6 = cast(%5) {{to="bf16"}} : bf16[3,4]
            result r0 = %2
            result r1 = %6
          }}
        }}
        %5 = matmul({}, %0) {{trans_a=false, trans_b=false}} : bf16[3,5]
        {}
      }}
    }}
    result y = %3
  }})",
                                 made, results));
}

TEST(MatmulForm, OfARowGroupBeforeIt) {
  Graph graph = group_with_prologue("%4", "result r0 = %5 result r1 = %3");
  MatmulForm form = form_of(graph);
  EXPECT_EQ(form.a, -1);
  EXPECT_EQ(form.b, 0);
  EXPECT_EQ(form.y, 0);
  ASSERT_TRUE(form.prologue);
  EXPECT_EQ(form.prologue->inputs, (std::vector<int>{1, 2}));
  EXPECT_EQ(form.prologue->outputs, (std::vector<int>{1, -1}));
  EXPECT_EQ(form.prologue->rows.rows, 3);
  expect_round_trip(graph);
  // What is the operand is stored nowhere, and what is not is stored.
  EXPECT_THROW(group_with_prologue("%3", "result r0 = %5 result r1 = %3"), InternalError);
}

// The verifier, which parsing calls, refuses other bodies.
TEST(MatmulForm, RefusesOtherBodies) {
  const std::string bias = "bf16[5]", matrix = "bf16[2,3,5]";
  EXPECT_THROW(group_of(bias, "%4 = mul(%3, %2) : bf16[2,3,5] result r0 = %4"), InternalError);
  EXPECT_THROW(group_of(bias, "%4 = add(%3, %2) : bf16[2,3,5] %5 = mul(%4, %2) : bf16[2,3,5] result r0 = %5"),
               InternalError);
  EXPECT_THROW(group_of(matrix, "%4 = softmax(%3) : bf16[2,3,5] %5 = mul(%4, %2) : bf16[2,3,5] result r0 = %5"),
               InternalError);
  EXPECT_THROW(group_of(matrix, "%4 = exp(%3) : bf16[2,3,5] %5 = mul(%4, %2) : bf16[2,3,5] result r0 = %4"),
               InternalError);
  EXPECT_NO_THROW(group_of(matrix, "%4 = exp(%3) : bf16[2,3,5] %5 = mul(%4, %2) : bf16[2,3,5] result r0 = %5"));
}

// A kernel for the op takes operand and argument in that order.
TEST(MatmulForm, AppliesAnOpToItsOperandsInOneOrder) {
  auto applies = [](const std::string& function, const OpDef& op) {
    return form_of(group_of("bf16[2,3,5]", function + " : bf16[2,3,5] result r0 = %4")).applies(op);
  };
  EXPECT_TRUE(applies("%4 = gelu_grad(%2, %3)", op::gelu_grad));
  EXPECT_FALSE(applies("%4 = gelu_grad(%3, %2)", op::gelu_grad));
  EXPECT_FALSE(applies("%4 = gelu_grad(%2, %3)", op::mul));
}

}  // namespace
}  // namespace tokamak
