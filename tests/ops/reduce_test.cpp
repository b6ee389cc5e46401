#include "ops/reduce.h"

#include "autodiff/differentiate.h"
#include "graph/builder.h"
#include "ops/interpret.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs over(Shape dims, bool keep) { return {{"dims", std::move(dims)}, {"keep", keep}}; }

}  // namespace

std::vector<OpCase> reduce_cases() {
  return {
      {"Last", &op::reduce_sum, {f32({3, 7})}, over({1}, true)},
      {"LastDropped", &op::reduce_sum, {f32({2, 3, 7})}, over({2}, false)},
      {"First", &op::reduce_sum, {f32({7, 3})}, over({0}, false)},
      {"FirstTwo", &op::reduce_sum, {f32({4, 7, 3})}, over({0, 1}, false)},
      {"Middle", &op::reduce_sum, {f32({4, 7, 3})}, over({1}, true)},
      {"Outer", &op::reduce_sum, {f32({4, 7, 3})}, over({0, 2}, true)},
      {"All", &op::reduce_sum, {f32({4, 7, 3})}, over({0, 1, 2}, false)},
      {"None", &op::reduce_sum, {f32({4})}, over({}, false)},
      {"LongRow", &op::reduce_sum, {f32({2, 5000})}, over({1}, false), 1e-4},
      {"ManyRows", &op::reduce_sum, {f32({1000, 3})}, over({0}, false), 1e-4},
      {"Bf16", &op::reduce_sum, {bf16({5, 9})}, over({1}, false), 2e-2},
      {"Last", &op::reduce_max, {f32({3, 7})}, over({1}, true), 0},
      {"First", &op::reduce_max, {f32({70, 3})}, over({0}, false), 0},
      {"Middle", &op::reduce_max, {f32({4, 7, 3})}, over({1}, false), 0},
      {"All", &op::reduce_max, {f32({4, 7})}, over({0, 1}, false), 0},
      {"Negative", &op::reduce_max, {f32({4, 7}, -9, -3)}, over({1}, false), 0},
      {"One", &op::sum_squares, {f32({4, 7})}},
      {"Many", &op::sum_squares, {f32({4, 7}), f32({5}), f32({}), f32({3, 1, 2})}},
      {"Low", &op::sum_squares, {bf16({40, 70}), f32({5}), {{DType::kF16, {3000}}}}},
      {"Long", &op::sum_squares, {f32({70001}), f32({3})}},
      {"Pieces", &op::sum_squares, {f32({4, 7}), f32({4, 7}), bf16({4, 7})}, {{"pieces", 2}}},
      {"OnePiece", &op::sum_squares, {f32({3, 5})}, {{"pieces", 1}}},
      {"LongPieces", &op::sum_squares, {bf16({2, 70001}), f32({2, 70001})}, {{"pieces", 2}}},
  };
}

namespace {

TEST(Reduce, SharesTheGradientAmongEquals) {
  // max of (2, 2, 1): the finite-difference cases have no ties.
  auto y = evaluate({"", &op::reduce_max, {f32({3})}, over({0}, false)}, {{2, 2, 1}});
  EXPECT_EQ(y[0].data, std::vector<double>{2});
}

TEST(Reduce, GivesShapes) {
  auto shape = [](Shape from, Shape dims, bool keep) {
    Graph graph = case_graph({"", &op::reduce_sum, {f32(std::move(from))}, over(std::move(dims), keep)});
    return to_string(graph.shape(graph.results()[0].value));
  };
  EXPECT_EQ(shape({2, 3, 4}, {1}, true), "[2,1,4]");
  EXPECT_EQ(shape({2, 3, 4}, {0, 2}, false), "[3]");
  EXPECT_EQ(shape({2, 3}, {0, 1}, false), "[]");
}

TEST(Reduce, RefusesWrongDims) {
  expect_refused({"", &op::reduce_sum, {f32({2, 3})}, over({2}, true)}, "expected increasing dims of [2,3], got [2]");
  expect_refused({"", &op::reduce_sum, {f32({2, 3})}, over({-1}, true)}, "got [-1]");
  expect_refused({"", &op::reduce_max, {f32({2, 3})}, over({1, 0}, true)}, "got [1,0]");
  expect_refused({"", &op::reduce_max, {f32({2, 3})}, over({1, 1}, true)}, "got [1,1]");
}

TEST(SumSquares, RefusesIntegers) {
  expect_refused({"", &op::sum_squares, {f32({2}), i32({2}, 0, 2)}}, "expected float tensors, got i32[2]");
}

TEST(SumSquares, RefusesPiecesThatAreNotEqual) {
  expect_refused({"", &op::sum_squares, {f32({4, 2}), f32({4})}, {{"pieces", 4}}}, "of one shape for sums of pieces");
  const char* message = "expected dim 0 to be of 4 equal pieces, got f32[";
  expect_refused({"", &op::sum_squares, {f32({6, 4})}, {{"pieces", 4}}}, message);
  expect_refused({"", &op::sum_squares, {f32({})}, {{"pieces", 4}}}, message);
}

TEST(Reduce, EqualMaximaShareTheGradient) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueId x = g.parameter("x", {DType::kF32, {4}});
  ValueId largest = reduce_max(g, x, {0}, false);
  graph.add_result("grad", differentiate(g, largest, {&x, 1})[0]);
  EXPECT_EQ(interpret(graph, {HostTensor({DType::kF32, {4}}, {1, 3, 3, 0})}).results[0].data,
            (std::vector<double>{0, 0.5, 0.5, 0}));
}

}  // namespace
}  // namespace tokamak::test
