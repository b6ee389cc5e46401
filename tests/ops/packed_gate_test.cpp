#include "ops/packed_gate.h"

#include "tests/ops/harness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {

std::vector<OpCase> packed_gate_cases() {
  return {
      {"Rows", &op::packed_gate, {f32({3, 8}, -4, 4)}},
      {"Batch", &op::packed_gate, {f32({2, 3, 32}, -4, 4)}},
      {"OneColumn", &op::packed_gate, {f32({5, 2}, -4, 4)}},
      {"OddColumns", &op::packed_gate, {f32({5, 14}, -4, 4)}},
      {"ManyVectors", &op::packed_gate, {f32({70, 96}, -4, 4)}},
      {"Bf16", &op::packed_gate, {bf16({2, 3, 32}, -4, 4)}, {}, 1e-2},
      {"Rows", &op::packed_gate_grad, {f32({3, 4}), f32({3, 8}, -4, 4)}},
      {"Batch", &op::packed_gate_grad, {f32({2, 3, 16}), f32({2, 3, 32}, -4, 4)}},
      {"OneColumn", &op::packed_gate_grad, {f32({5, 1}), f32({5, 2}, -4, 4)}},
      {"OddColumns", &op::packed_gate_grad, {f32({5, 7}), f32({5, 14}, -4, 4)}},
      {"ManyVectors", &op::packed_gate_grad, {f32({70, 48}), f32({70, 96}, -4, 4)}},
      {"Bf16", &op::packed_gate_grad, {bf16({2, 3, 16}), bf16({2, 3, 32}, -4, 4)}, {}, 1e-2},
  };
}

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(PackedGate, TheGateIsBeforeUpInEachRow) {
  OpCase c{"", &op::packed_gate, {f32({2, 4})}};
  auto out = evaluate(c, {{0, 2, 7, 3, -1, 50, 5, -2}});
  EXPECT_EQ(out[0][0], 0);
  EXPECT_NEAR(out[0][1], 2 * logistic(2) * 3, 1e-6);
  EXPECT_NEAR(out[0][2], -logistic(-1) * 5, 1e-6);
  EXPECT_NEAR(out[0][3], -100, 1e-5);
}

// At a gate of 0 silu is 0 and its derivative a half.
TEST(PackedGate, TheGradientsLieAsGateAndUpDo) {
  OpCase c{"", &op::packed_gate_grad, {f32({1, 2}), f32({1, 4})}};
  auto out = evaluate(c, {{3, 5}, {0, 2, 7, 11}});
  EXPECT_NEAR(out[0][0], 3 * 7 * 0.5, 1e-6);
  EXPECT_NEAR(out[0][1], 5 * 11 * (logistic(2) + 2 * logistic(2) * (1 - logistic(2))), 1e-5);
  EXPECT_EQ(out[0][2], 0);
  EXPECT_NEAR(out[0][3], 5 * 2 * logistic(2), 1e-6);
}

TEST(PackedGate, RefusesWhatHasNoTwoHalves) {
  expect_refused({"", &op::packed_gate, {f32({2, 5})}}, "[packed_gate] expected floats with gate and up");
  expect_refused({"", &op::packed_gate_grad, {f32({2, 4}), f32({2, 4})}}, "expected the gradient of half the columns");
  expect_refused({"", &op::packed_gate_grad, {bf16({2, 2}), f32({2, 4})}}, "expected the gradient of half the columns");
}

}  // namespace
}  // namespace tokamak::test
