#include "ops/float8_scales.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs bounds(Shape has, Shape widths) { return {{"has", std::move(has)}, {"widths", std::move(widths)}}; }

}  // namespace

// A norm with a gain, with a bias too, and products of both.
std::vector<OpCase> float8_scales_cases() {
  std::vector<CaseInput> many{f32({300}),  f32({48}),   bf16({48}, -3, 1), f32({16}), f32({}, 0, 5),
                              f32({1000}), f32({1000}), f32({}, 1, 2),     bf16({70})};
  return {
      {"Norm", &op::float8_scales, {f32({300})}, bounds({1}, {300}), 1e-6},
      {"Many", &op::float8_scales, many, bounds({1, 3, 5, 15}, {300, 48, 16, 1000}), 1e-6},
  };
}

namespace {

TEST(Float8Scales, AreTheBoundBy448) {
  auto scales = [](Shape has, std::vector<CaseInput> inputs, const std::vector<std::vector<double>>& values) {
    return evaluate({"", &op::float8_scales, std::move(inputs), bounds(std::move(has), {4})}, values);
  };
  auto norm = scales({3}, {f32({4}), f32({4})}, {{1, -5, 2, 3}, {0, 4, -7, 1}});  // 2 * 5 + 7
  EXPECT_EQ(norm[0][0], 17.0 / 448);
  EXPECT_EQ(norm[1][0], 448 / 17.0);
  auto product = scales({13}, {f32({4}), f32({}), f32({2})}, {{1, -5, 2, 3}, {8}, {1, -2}});
  EXPECT_NEAR(product[0][0] * 448, 1.14 * (2 * 5 * 8 + 2), 1e-4) << "with room for rounding";
  auto zeros = scales({1}, {f32({4})}, {{0, 0, 0, 0}});
  EXPECT_GT(zeros[0][0], 0) << "an inverse that is a number";
}

TEST(Float8Scales, HasTheBitsOfItsDecomposition) { expect_bits_of_decomposition(float8_scales_cases()[1]); }

TEST(Float8Scales, RefusesWhatIsNoBound) {
  expect_refused({"", &op::float8_scales, {f32({4})}, bounds({8}, {4})}, "in has 1 to 7, or 12 to 15, got 8");
  expect_refused({"", &op::float8_scales, {f32({4})}, bounds({3}, {4})},
                 "expected 1 widths and 2 operands, got 1 and 1");
  expect_refused({"", &op::float8_scales, {i32({4}, 0, 5)}, bounds({1}, {4})}, "expected float tensors, got i32[4]");
}

}  // namespace
}  // namespace tokamak::test
