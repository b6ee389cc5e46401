#include "ops/matmul.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs transposed(bool a, bool b) { return {{"trans_a", a}, {"trans_b", b}}; }

// With a result of its own type.
Attrs giving(std::string result) { return {{"result", std::move(result)}, {"trans_a", false}, {"trans_b", false}}; }

}  // namespace

std::vector<OpCase> matmul_cases() {
  return {
      {"Plain", &op::matmul, {f32({3, 4}), f32({4, 5})}, transposed(false, false)},
      {"TransA", &op::matmul, {f32({4, 3}), f32({4, 5})}, transposed(true, false)},
      {"TransB", &op::matmul, {f32({3, 4}), f32({5, 4})}, transposed(false, true)},
      {"TransBoth", &op::matmul, {f32({4, 3}), f32({5, 4})}, transposed(true, true)},
      {"Rows", &op::matmul, {f32({2, 3, 4}), f32({4, 5})}, transposed(false, false)},
      {"RowsTransB", &op::matmul, {f32({2, 3, 4}), f32({5, 4})}, transposed(false, true)},
      {"Batch", &op::matmul, {f32({2, 3, 4}), f32({2, 4, 5})}, transposed(false, false)},
      {"BatchTransA", &op::matmul, {f32({2, 4, 3}), f32({2, 4, 5})}, transposed(true, false)},
      {"BatchTransB", &op::matmul, {f32({2, 2, 3, 4}), f32({2, 2, 5, 4})}, transposed(false, true)},
      {"BatchTransBoth", &op::matmul, {f32({2, 4, 3}), f32({2, 5, 4})}, transposed(true, true)},
      {"Vector", &op::matmul, {f32({1, 7}), f32({7, 1})}, transposed(false, false)},
      {"Outer", &op::matmul, {f32({5, 1}), f32({1, 6})}, transposed(false, false)},
      {"Odd", &op::matmul, {f32({17, 33}), f32({33, 19})}, transposed(false, false)},
      {"Bf16", &op::matmul, {bf16({9, 16}), bf16({16, 12})}, transposed(false, false), 2e-2},
      // Formats and scales of its own come after differentiation.
      {.name = "Widened",
       .op = &op::matmul,
       .inputs = {bf16({9, 16}), bf16({16, 12})},
       .attrs = giving("f32"),
       .smooth = false},
      {.name = "Mixed",
       .op = &op::matmul,
       .inputs = {bf16({9, 16}), f32({16, 12})},
       .attrs = giving("f32"),
       .smooth = false},
      {.name = "MixedOfFewRows",
       .op = &op::matmul,
       .inputs = {f32({3, 16}), bf16({16, 12})},
       .attrs = giving("f32"),
       .smooth = false},
      {.name = "Scaled",
       .op = &op::matmul,
       .inputs = {f32({9, 16}), f32({16, 12}), f32({}, 2, 3), f32({}, 0.1, 0.2)},
       .attrs = transposed(false, false),
       .smooth = false},
  };
}

namespace {

TEST(Matmul, Multiplies) {
  EXPECT_EQ(
      evaluate({"", &op::matmul, {f32({2, 2}), f32({2, 2})}, transposed(false, false)}, {{1, 2, 3, 4}, {5, 6, 7, 8}})[0]
          .data,
      (std::vector<double>{19, 22, 43, 50}));
}

TEST(Matmul, RefusesOperandsThatDoNotFit) {
  expect_refused({"", &op::matmul, {f32({2, 3}), f32({2, 3})}, transposed(false, false)},
                 "expected the inner dims to be equal, got [2,3] times [2,3]");
  expect_refused({"", &op::matmul, {f32({2, 3}), f32({3, 2})}, transposed(false, true)},
                 "got [2,3] times [3,2] transposed");
  expect_refused({"", &op::matmul, {f32({3}), f32({3, 2})}, transposed(false, false)}, "expected two dims or more");
  expect_refused({"", &op::matmul, {f32({2, 2, 3}), f32({3, 3, 2})}, transposed(false, false)},
                 "expected equal batch dims");
  expect_refused({"", &op::matmul, {f32({2, 3, 4}), f32({3, 5})}, transposed(true, false)},
                 "expected a batch of b as well");
  expect_refused({"", &op::matmul, {f32({2, 3}), bf16({3, 2})}, transposed(false, false)},
                 "expected operands of one dtype");
}

TEST(Matmul, ScalesBothOperands) {
  OpCase scaled{"", &op::matmul, {f32({1, 2}), f32({2, 1}), f32({}), f32({})}, transposed(false, false)};
  EXPECT_EQ(evaluate(scaled, {{1, 2}, {3, 4}, {10}, {0.5}})[0].data, (std::vector<double>{55}));
  expect_refused({"", &op::matmul, {f32({1, 2}), f32({2, 1}), f32({})}, transposed(false, false)},
                 "expected a scale of each operand or none");
  expect_refused({"", &op::matmul, {f32({1, 2}), f32({2, 1}), f32({1}), f32({})}, transposed(false, false)},
                 "expected scales that are f32[], got f32[1]");
}

TEST(Matmul, CountsTwoFlopsAProduct) {
  Graph graph = case_graph({"", &op::matmul, {f32({2, 3, 4}), f32({4, 5})}, transposed(false, false)});
  EXPECT_EQ(node_cost(graph, graph.nodes()[0]).flops, 2.0 * 6 * 4 * 5);
}

}  // namespace
}  // namespace tokamak::test
