#include "plan/in_place.h"

#include "graph/text.h"
#include "ops/all_ops.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak {
namespace {

Graph with_group(std::string_view kind, std::string_view body) {
  std::string arguments = "input a = %0 : f32[2,8] input b = %1 : f32[2,8] input c = %2 : f32[8]";
  std::string node = fmt::format("%3 = {}(%0, %1, %2) : f32[2,8] {{{}}}", kind, body);
  return parse_graph(fmt::format("graph g {{{} {} result y = %3}}", arguments, node), find_op);
}

constexpr const char* kElementwise = R"(graph body {
  input a = %0 : f32[2,8]
  input b = %1 : f32[2,8]
  input c = %2 : f32[8]
  %3 = reshape(%2) {shape=[1,8]} : f32[1,8]
  %4 = mul(%0, %3) : f32[2,8]
  %5 = add(%4, %1) : f32[2,8]
  result y = %5
})";

bool may(const Graph& graph, int input) { return may_overwrite(graph, graph.nodes().back(), 0, input); }

TEST(InPlace, FlatGroupOverFullSizedInputs) {
  Graph graph = with_group("flat", kElementwise);
  EXPECT_TRUE(may(graph, 0));
  EXPECT_TRUE(may(graph, 1));
  EXPECT_FALSE(may(graph, 2));  // read for every row
}

TEST(InPlace, OtherGroupsReadAgain) {
  for (const char* kind : {"row", "column"}) EXPECT_FALSE(may(with_group(kind, kElementwise), 0)) << kind;
}

// Every block of a matmul reads the rows that it makes its operand of.
TEST(InPlace, NotOverWhatAMatmulsPrologueReads) {
  Graph graph = parse_graph(R"(graph g {
    input b = %0 : f32[4,4]
    input x = %1 : f32[2,4]
    input c = %2 : f32[2,4]
    %3, %4 = fused_matmul(%0, %1, %2) : f32[2,4], f32[2,4] {
      graph body {
        input b = %0 : f32[4,4]
        input x = %1 : f32[2,4]
        input c = %2 : f32[2,4]
        %3, %4 = row(%1) : f32[2,4], f32[2,4] {
          graph body {
            input x = %0 : f32[2,4]
            %1 = exp(%0) : f32[2,4]
            %2 = reduce_sum(%1) {dims=[1], keep=true} : f32[2,1]
            %3 = sub(%1, %2) : f32[2,4]
            result r0 = %1
            result r1 = %3
          }
        }
        %5 = matmul(%4, %0) {trans_a=false, trans_b=false} : f32[2,4]
        %6 = add(%2, %5) : f32[2,4]
        result r0 = %6
        result r1 = %3
      }
    }
    result y = %3
    result s = %4
  })",
                            find_op);
  const Node& node = graph.nodes()[0];
  EXPECT_TRUE(may_overwrite(graph, node, 0, 2));  // the addend
  EXPECT_FALSE(may_overwrite(graph, node, 0, 1));
  EXPECT_FALSE(may_overwrite(graph, node, 1, 1));
  EXPECT_FALSE(may_overwrite(graph, node, 1, 2));
}

// A group of two arguments and two results.
Graph flat_group(std::string_view body) {
  return parse_graph(fmt::format(R"(graph g {{
    input a = %0 : f32[1,8]
    input b = %1 : f32[1,8]
    %2, %3 = flat(%0, %1) : f32[1,8], f32[1,8] {{
      graph body {{
        input a = %0 : f32[1,8]
        input b = %1 : f32[1,8]
        {}
      }}
    }}
    result p = %2
    result q = %3
  }})",
                                 body),
                     find_op);
}

TEST(InPlace, FlatGroupThatReadsAfterTheOutputIsMade) {
  Graph graph = flat_group(R"(
        %2 = mul(%0, %1) : f32[1,8]
        %3 = add(%2, %1) : f32[1,8]
        result p = %2
        result q = %3)");
  const Node& node = graph.nodes()[0];
  EXPECT_TRUE(may_overwrite(graph, node, 0, 0));
  EXPECT_FALSE(may_overwrite(graph, node, 0, 1));  // b is read for q, after p was written
  EXPECT_TRUE(may_overwrite(graph, node, 1, 1));
}

TEST(InPlace, PointwiseOverAnyOperandOfTheSameType) {
  Graph graph = parse_graph(R"(graph g {
    input a = %0 : f32[8]
    input b = %1 : f32[2,8]
    %2 = sub(%0, %1) : f32[2,8]
    result y = %2
  })",
                            find_op);
  EXPECT_FALSE(may(graph, 0));
  EXPECT_TRUE(may(graph, 1));
}

TEST(InPlace, OpsThatDoNotPromiseIt) {
  Graph soft = parse_graph("graph g { input a = %0 : f32[2,8] %1 = softmax(%0) : f32[2,8] result y = %1 }", find_op);
  EXPECT_FALSE(may(soft, 0));
  Graph widening = parse_graph(R"(graph g {
    input a = %0 : bf16[8]
    %1 = cast(%0) {to="f32"} : f32[8]
    result y = %1
  })",
                               find_op);
  EXPECT_FALSE(may(widening, 0));
}

Graph matmul_group(std::string_view sum) {
  return parse_graph(fmt::format(R"(graph g {{
    input a = %0 : f32[4,4]
    input b = %1 : f32[4,4]
    input c = %2 : f32[4,4]
    %3 = fused_matmul(%0, %1, %2) : f32[4,4] {{
      graph body {{
        input a = %0 : f32[4,4]
        input b = %1 : f32[4,4]
        input c = %2 : f32[4,4]
        %3 = matmul(%0, %1) {{trans_a=false, trans_b=false}} : f32[4,4]
        %4 = {}
        result y = %4
      }}
    }}
    result y = %3
  }})",
                                 sum),
                     find_op);
}

TEST(InPlace, MatmulGroupOverWhatItAddsTo) {
  Graph graph = matmul_group("add(%2, %3) : f32[4,4]");
  EXPECT_FALSE(may(graph, 0));
  EXPECT_FALSE(may(graph, 1));
  EXPECT_TRUE(may(graph, 2));
  EXPECT_FALSE(may(matmul_group("gelu_grad(%2, %3) : f32[4,4]"), 2));
  // Every block of the sum reads all rows of the left operand, or all columns of the right one.
  EXPECT_FALSE(may(matmul_group("add(%0, %3) : f32[4,4]"), 0));
  EXPECT_FALSE(may(matmul_group("add(%1, %3) : f32[4,4]"), 1));
}

}  // namespace
}  // namespace tokamak
