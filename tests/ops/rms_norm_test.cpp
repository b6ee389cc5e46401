#include "ops/rms_norm.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

const Attrs kEps{{"eps", 1e-5}};

}  // namespace

std::vector<OpCase> rms_norm_cases() {
  CaseInput rstd = f32({3, 1}, 0.5, 2);
  std::vector<OpCase> cases = {
      {"Rows", &op::rms_norm, {f32({3, 7}), f32({7})}, kEps},
      {"Batch", &op::rms_norm, {f32({2, 3, 5}), f32({5})}, kEps},
      {"Vector", &op::rms_norm, {f32({9}), f32({9})}, kEps},
      {"Long", &op::rms_norm, {f32({2, 5001}), f32({5001})}, kEps},
      {"WithoutGain", &op::rms_norm, {f32({2, 3, 5})}, kEps},
      {"VectorWithoutGain", &op::rms_norm, {f32({9})}, kEps},
      {"Bf16", &op::rms_norm, {bf16({3, 8}), f32({8})}, kEps, 2e-2},
      {"Rows", &op::rms_norm_grad, {f32({3, 7}), f32({3, 7}), f32({7}), rstd}},
      {"Batch", &op::rms_norm_grad, {f32({2, 3, 5}), f32({2, 3, 5}), f32({5}), f32({2, 3, 1}, 0.5, 2)}},
      {"WithoutGain", &op::rms_norm_grad, {f32({3, 7}), f32({3, 7}), rstd}},
      {"Rows", &op::rms_norm_grad_gain, {f32({3, 7}), f32({3, 7}), rstd}},
      {"Vector", &op::rms_norm_grad_gain, {f32({5}), f32({5}), f32({1}, 0.5, 2)}},
  };
  return with_gradients(std::move(cases), op::rms_norm, 1);
}

namespace {

TEST(RmsNorm, ScalesRowsToRootMeanSquareOne) {
  auto out = evaluate({"", &op::rms_norm, {f32({1, 2}), f32({2})}, {{"eps", 0.0}}}, {{1, 7}, {1, 10}});
  EXPECT_NEAR(out[0][0], 0.2, 1e-15);
  EXPECT_NEAR(out[0][1], 14, 1e-14);
  EXPECT_NEAR(out[1][0], 0.2, 1e-15);
  out = evaluate({"", &op::rms_norm, {f32({1, 2})}, {{"eps", 0.0}}}, {{1, 7}});
  EXPECT_NEAR(out[0][1], 1.4, 1e-15);
}

TEST(RmsNorm, RefusesAGainThatDoesNotFit) {
  expect_refused({"", &op::rms_norm, {f32({3, 7}), f32({3})}, kEps}, "expected input 1 to be [7], got f32[3]");
}

}  // namespace
}  // namespace tokamak::test
