#include "ops/rotary.h"

#include "ops/packed_rotary.h"

#include "tests/ops/harness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

Attrs attrs(int64_t head_width, double factor = 1, int64_t original_context = 0) {
  return {{"factor", factor},
          {"head_width", head_width},
          {"high_freq", 4.0},
          {"low_freq", 1.0},
          {"original_context", original_context},
          {"theta", 100.0}};
}
Attrs grad_attrs(int64_t head_width, int64_t group) {
  Attrs all = attrs(head_width);
  all.set("group", group);
  return all;
}

}  // namespace

std::vector<OpCase> rotary_cases() {
  CaseInput row = i32({1, 3}, 0, 90), rows = i32({2, 3}, 0, 90);
  return {
      {"OneHead", &op::rotary_qkv, {f32({1, 3, 4}), f32({1, 3, 4}), f32({1, 3, 4}), row}, attrs(4)},
      {"Heads", &op::rotary_qkv, {f32({2, 3, 8}), f32({2, 3, 8}), f32({2, 3, 8}), row}, attrs(2)},
      {"Groups", &op::rotary_qkv, {f32({2, 3, 24}), f32({2, 3, 8}), f32({2, 3, 8}), rows}, attrs(4)},
      {"OneGroup", &op::rotary_qkv, {f32({2, 3, 16}), f32({2, 3, 4}), f32({2, 3, 4}), rows}, attrs(4)},
      {"Linear", &op::rotary_qkv, {f32({2, 3, 8}), f32({2, 3, 8}), f32({2, 3, 8}), row}, attrs(8, 4)},
      {"Llama3", &op::rotary_qkv, {f32({2, 3, 16}), f32({2, 3, 16}), f32({2, 3, 16}), row}, attrs(16, 8, 64)},
      {"Bf16", &op::rotary_qkv, {bf16({2, 3, 8}), bf16({2, 3, 4}), bf16({2, 3, 4}), row}, attrs(4), 1e-2},
      {"Groups", &op::rotary_qkv_grad, {f32({2, 3, 72}), rows}, grad_attrs(4, 3)},
      {"OneRow", &op::rotary_qkv_grad, {f32({2, 3, 24}), row}, grad_attrs(2, 1)},
      {"Bf16", &op::rotary_qkv_grad, {bf16({2, 3, 24}), row}, grad_attrs(4, 2), 2e-2},
      {"Heads", &op::packed_rotary, {f32({2, 3, 24}), row}, grad_attrs(4, 1)},
      {"Groups", &op::packed_rotary, {f32({2, 3, 40}), rows}, grad_attrs(4, 3)},
      {"Bf16", &op::packed_rotary, {bf16({2, 3, 24}), row}, grad_attrs(4, 1), 1e-2},
      {"Heads", &op::packed_rotary_grad, {f32({2, 3, 24}), row}, grad_attrs(4, 1)},
      {"Groups", &op::packed_rotary_grad, {f32({2, 3, 72}), rows}, grad_attrs(4, 3)},
      {"Bf16", &op::packed_rotary_grad, {bf16({2, 3, 24}), row}, grad_attrs(4, 2), 2e-2},
  };
}

namespace {

// Position 2, frequencies 1 and 1/10: columns 0 and 2 are turned by 2, columns 1 and 3 by 0.2.
TEST(Rotary, TurnsPairsOfColumnsAndRepeatsGroups) {
  OpCase c{"", &op::rotary_qkv, {f32({1, 1, 8}), f32({1, 1, 4}), f32({1, 1, 4}), i32({1, 1}, 0, 3)}, attrs(4)};
  auto out = evaluate(c, {{1, 0, 0, 0, 0, 1, 0, 1}, {0, 1, 0, 0}, {5, 6, 7, 8}, {2}});
  double q[] = {std::cos(2), 0, std::sin(2), 0, 0, std::cos(0.2) - std::sin(0.2), 0, std::cos(0.2) + std::sin(0.2)};
  double k[] = {0, std::cos(0.2), 0, std::sin(0.2)};
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(out[0][i], q[i], 1e-7) << i;
    EXPECT_NEAR(out[0][8 + i], k[i % 4], 1e-7) << i;
    EXPECT_EQ(out[0][16 + i], double(5 + i % 4)) << i;
  }
}

// What attention sees of two tokens depends on how far they are from each other alone.
TEST(Rotary, ProductsGoByTheDistance) {
  OpCase c{"", &op::rotary_qkv, {f32({1, 2, 4}), f32({1, 2, 4}), f32({1, 2, 4}), i32({1, 2}, 0, 99)}, attrs(4)};
  auto product = [&](double first) {
    auto out =
        evaluate(c, {{1, 2, 3, 4, 1, 2, 3, 4}, {4, 3, 1, -2, 4, 3, 1, -2}, std::vector<double>(8), {first, first + 7}});
    double sum = 0;
    for (int64_t i = 0; i < 4; ++i) sum += out[0][12 + i] * out[0][4 + i];  // q of the later, k of the earlier
    return sum;
  };
  EXPECT_NEAR(product(0), product(40), 1e-4);
  EXPECT_GT(std::abs(product(0) - 1), 1e-3);
}

// Of 16 columns: 8 frequencies 100^(-i/8). In 64 positions they turn 64 f / 2 pi times: 10.2, 5.7, 3.2, 1.8, 1.02, ...
TEST(Rotary, Llama3StretchesSlowFrequenciesAlone) {
  std::vector<float> plain = rotary_frequencies(attrs(16)), scaled = rotary_frequencies(attrs(16, 8, 64));
  EXPECT_EQ(plain[0], 1);
  EXPECT_EQ(scaled[0], plain[0]);
  EXPECT_EQ(scaled[1], plain[1]);
  EXPECT_LT(scaled[2], plain[2]);
  EXPECT_GT(scaled[2], plain[2] / 8);
  for (size_t i : {5, 6, 7}) EXPECT_FLOAT_EQ(scaled[i], plain[i] / 8) << i;
  std::vector<float> linear = rotary_frequencies(attrs(16, 4));
  for (size_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(linear[i], plain[i] / 4) << i;
}

TEST(Rotary, RefusesWhatDoesNotFit) {
  CaseInput row = i32({1, 3}, 0, 9);
  expect_refused({"", &op::rotary_qkv, {f32({1, 3, 9}), f32({1, 3, 9}), f32({1, 3, 9}), row}, attrs(3)},
                 "of heads of an even width, got f32[1,3,9]");
  expect_refused({"", &op::rotary_qkv, {f32({1, 3, 12}), f32({1, 3, 8}), f32({1, 3, 8}), row}, attrs(4)},
                 "a number of heads that divides that of q");
  expect_refused({"", &op::rotary_qkv, {f32({1, 3, 8}), f32({1, 3, 8}), f32({1, 3, 4}), row}, attrs(4)},
                 "expected k and v alike");
  expect_refused({"", &op::rotary_qkv, {f32({1, 3, 8}), f32({1, 3, 8}), f32({1, 3, 8}), i32({3}, 0, 9)}, attrs(4)},
                 "expected positions i32[1,3] or i32[1,3], got i32[3]");
  expect_refused({"", &op::rotary_qkv_grad, {f32({1, 3, 20}), row}, grad_attrs(4, 2)}, "of groups of 2 heads");
}

}  // namespace
}  // namespace tokamak::test
