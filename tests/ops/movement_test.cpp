#include "ops/movement.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs permuted(Shape perm) { return {{"perm", std::move(perm)}}; }
Attrs range(int64_t dim, int64_t begin, int64_t size) { return {{"begin", begin}, {"dim", dim}, {"size", size}}; }
Attrs padding(int64_t dim, int64_t before, int64_t after) {
  return {{"after", after}, {"before", before}, {"dim", dim}};
}
Attrs along(int64_t dim) { return {{"dim", dim}}; }
Attrs shaped(Shape shape) { return {{"shape", std::move(shape)}}; }

}  // namespace

std::vector<OpCase> movement_cases() {
  return {
      {"Flat", &op::reshape, {f32({2, 6})}, shaped({12}), 0},
      {"Scalar", &op::reshape, {f32({1, 1})}, shaped({}), 0},
      {"Matrix", &op::transpose, {f32({3, 5})}, permuted({1, 0}), 0},
      {"Heads", &op::transpose, {f32({2, 5, 3, 4})}, permuted({0, 2, 1, 3}), 0},
      {"Rotated", &op::transpose, {f32({2, 3, 4})}, permuted({2, 0, 1}), 0},
      {"Identity", &op::transpose, {f32({2, 3})}, permuted({0, 1}), 0},
      {"OfOnes", &op::transpose, {f32({1, 3, 1, 2})}, permuted({3, 2, 1, 0}), 0},
      {"Bf16", &op::transpose, {bf16({3, 5})}, permuted({1, 0}), 0},
      {"Integers", &op::transpose, {i32({3, 5}, 0, 99)}, permuted({1, 0}), 0},
      {"First", &op::slice, {f32({5, 3})}, range(0, 1, 3), 0},
      {"Last", &op::slice, {f32({2, 5, 7})}, range(2, 4, 3), 0},
      {"Middle", &op::slice, {f32({2, 5, 3})}, range(1, 4, 1), 0},
      {"Whole", &op::slice, {f32({5})}, range(0, 0, 5), 0},
      {"Bf16", &op::slice, {bf16({5, 3})}, range(1, 1, 1), 0},
      {"Rows", &op::slice_view, {f32({4, 64})}, range(0, 1, 2), 0},
      {"BehindOne", &op::slice_view, {bf16({1, 4, 128})}, range(1, 2, 2), 0},
      {"First", &op::pad, {f32({2, 3})}, padding(0, 1, 2), 0},
      {"Last", &op::pad, {f32({2, 3})}, padding(1, 0, 2), 0},
      {"Middle", &op::pad, {f32({2, 3, 2})}, padding(1, 3, 0), 0},
      {"Bf16", &op::pad, {bf16({2, 3})}, padding(1, 1, 1), 0},
      {"First", &op::concat, {f32({2, 3}), f32({1, 3})}, along(0), 0},
      {"Last", &op::concat, {f32({2, 3}), f32({2, 1}), f32({2, 4})}, along(1), 0},
      {"Middle", &op::concat, {f32({2, 3, 2}), f32({2, 1, 2})}, along(1), 0},
      {"One", &op::concat, {f32({3})}, along(0), 0},
      {"Bf16", &op::concat, {bf16({2, 3}), bf16({2, 2})}, along(1), 0},
  };
}

namespace {

TEST(Reshape, RefusesAnotherNumberOfElements) {
  expect_refused({"", &op::reshape, {f32({2, 3})}, shaped({5})}, "expected as many elements as [2,3], got [5]");
}

TEST(Reshape, BuilderFillsInOneDim) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {2, 3, 4}});
  EXPECT_EQ(g.shape(reshape(g, x, {-1, 4})), (Shape{6, 4}));
  EXPECT_EQ(reshape(g, x, {2, 3, 4}), x);
}

TEST(Transpose, MovesElements) {
  EXPECT_EQ(evaluate({"", &op::transpose, {f32({2, 3})}, permuted({1, 0})}, {{1, 2, 3, 4, 5, 6}})[0].data,
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
  expect_refused({"", &op::transpose, {f32({2, 3})}, permuted({0, 0})},
                 "expected a permutation of the dims of [2,3], got [0,0]");
  expect_refused({"", &op::transpose, {f32({2, 3})}, permuted({0})}, "got [0]");
}

TEST(Slice, RefusesARangeOutside) {
  expect_refused({"", &op::slice, {f32({5})}, range(0, 3, 3)}, "expected a range within [0, 5), got [3, 6)");
  expect_refused({"", &op::slice, {f32({5})}, range(0, -1, 3)}, "got [-1, 2)");
  expect_refused({"", &op::slice, {f32({5})}, range(0, 1, 0)}, "got [1, 1)");
  expect_refused({"", &op::slice, {f32({5})}, range(1, 0, 1)}, "expected a dim below 1, got 1");
}

TEST(SliceView, RefusesWhatLiesApartOrBeginsElsewhere) {
  expect_refused({"", &op::slice_view, {f32({2, 4, 16})}, range(1, 0, 2)},
                 "expected rows that lie one behind the other");
  expect_refused({"", &op::slice_view, {f32({4, 8})}, range(0, 1, 2)}, "a multiple of 64 bytes on, got 1 of f32[4,8]");
}

TEST(Pad, AddsZeros) {
  EXPECT_EQ(evaluate({"", &op::pad, {f32({2})}, padding(0, 1, 2)}, {{7, 8}})[0].data,
            (std::vector<double>{0, 7, 8, 0, 0}));
  expect_refused({"", &op::pad, {f32({5})}, padding(0, -1, 0)}, "expected amounts of 0 or more, got -1 and 0");
}

TEST(Concat, RefusesTensorsThatDoNotFit) {
  expect_refused({"", &op::concat, {f32({2, 3}), f32({2, 3})}, along(2)}, "expected a dim below 2, got 2");
  expect_refused({"", &op::concat, {f32({2, 3}), f32({3, 3})}, along(1)},
                 "expected tensors like f32[2,3] but for dim 1, got f32[3,3]");
  expect_refused({"", &op::concat, {f32({2, 3}), f32({3})}, along(0)}, "got f32[3]");
  expect_refused({"", &op::concat, {f32({2, 3}), bf16({2, 3})}, along(0)}, "got bf16[2,3]");
}

}  // namespace
}  // namespace tokamak::test
