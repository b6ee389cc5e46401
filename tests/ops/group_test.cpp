#include "ops/group.h"
#include "tests/ops/harness.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

std::shared_ptr<const Graph> body(std::string_view text) { return std::make_shared<const Graph>(parse(text)); }

constexpr std::string_view kFlat = R"(graph body {
  input a = %0 : f32[3,4]
  input b = %1 : f32[1,4]
  %2 = mul(%0, %1) : f32[3,4]
  %3 = exp(%2) : f32[3,4]
  result y = %3
  result z = %2
})";

constexpr std::string_view kRow = R"(graph body {
  input a = %0 : f32[3,4]
  %1 = reduce_sum(%0) {dims=[1], keep=true} : f32[3,1]
  %2 = sub(%0, %1) : f32[3,4]
  result y = %2
  result s = %1
})";

constexpr std::string_view kColumn = R"(graph body {
  input a = %0 : f32[3,4]
  %1 = mul(%0, %0) : f32[3,4]
  %2 = reduce_sum(%1) {dims=[0], keep=true} : f32[1,4]
  result y = %2
})";

constexpr std::string_view kMatmul = R"(graph body {
  input a = %0 : f32[3,4]
  input b = %1 : f32[4,5]
  input bias = %2 : f32[5]
  %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[3,5]
  %4 = add(%3, %2) : f32[3,5]
  result y = %4
})";

}  // namespace

std::vector<OpCase> group_cases() {
  return {
      {"Flat", &op::flat, {f32({3, 4}), f32({1, 4})}, {}, 1e-6, body(kFlat)},
      {"Row", &op::row, {f32({3, 4})}, {}, 1e-6, body(kRow)},
      {"Column", &op::column, {f32({3, 4})}, {}, 1e-6, body(kColumn)},
      {"FusedMatmul", &op::fused_matmul, {f32({3, 4}), f32({4, 5}), f32({5})}, {}, 1e-6, body(kMatmul)},
  };
}

namespace {

TEST(Group, CountsTheBodysFlopsAndItsOwnBytes) {
  Graph graph = case_graph(group_cases()[0]);
  Cost cost = node_cost(graph, graph.nodes()[0]);
  EXPECT_EQ(cost.flops, 24);
  EXPECT_EQ(cost.bytes, 4.0 * (12 + 4 + 12 + 12));
}

TEST(Group, CountsTheBodysDraws) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[3,4]
    input rng = %1 : i32[2]
    %2 = flat(%0, %1) : f32[3,4] {
      graph body {
        input x = %0 : f32[3,4]
        input rng = %1 : i32[2]
        %2 = random_uniform(%1) {shape=[3,4], stream=1} : f32[3,4]
        %3 = mul(%0, %2) : f32[3,4]
        result y = %3
      }
    }
    result y = %2
  })");
  EXPECT_EQ(node_cost(graph, graph.nodes()[0]).draws, 12);
}

}  // namespace
}  // namespace tokamak::test
