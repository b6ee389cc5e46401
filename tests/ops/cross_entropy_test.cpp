#include "ops/cross_entropy.h"
#include "tests/ops/harness.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

Attrs classes(int64_t n) { return {{"classes", n}}; }
Attrs capped(int64_t n, const Softcap& softcap) {
  Attrs attrs = classes(n);
  set_softcap(attrs, softcap);
  return attrs;
}

}  // namespace

std::vector<OpCase> cross_entropy_cases() {
  CaseInput lse = f32({4}, 1, 3), dloss = f32({4});
  std::vector<OpCase> cases = {
      {"All", &op::cross_entropy, {f32({4, 7}, -3, 3), i32({4}, 0, 7)}, classes(7)},
      {"Padded", &op::cross_entropy, {f32({4, 9}, -3, 3), i32({4}, 0, 7)}, classes(7)},
      {"HalfIsPadding", &op::cross_entropy, {f32({4, 8}, -3, 3), i32({4}, 0, 3)}, classes(3)},
      {"Unlabelled", &op::cross_entropy, {f32({9, 5}, -3, 3), i32({9}, -3, 5)}, classes(5)},
      {"Large", &op::cross_entropy, {f32({3, 7}, 300, 900), i32({3}, 0, 7)}, classes(7)},
      {"Long", &op::cross_entropy, {f32({3, 5001}, -3, 3), i32({3}, 0, 5000)}, classes(5000)},
      {"Bf16", &op::cross_entropy, {bf16({4, 7}, -3, 3), i32({4}, 0, 7)}, classes(7)},
      {"Capped", &op::cross_entropy, {f32({4, 9}, -6, 6), i32({4}, -1, 7)}, capped(7, {3})},
      {"CappedAndMoved", &op::cross_entropy, {f32({4, 7}, -9, 9), i32({4}, 0, 7)}, capped(7, {2, 5, 4})},
      {"Capped", &op::cross_entropy_grad, {f32({4, 9}, -6, 6), i32({4}, -1, 7), lse, dloss}, capped(7, {3})},
      {"CappedAndMoved",
       &op::cross_entropy_grad,
       {f32({4, 7}, -9, 9), i32({4}, 0, 7), lse, dloss},
       capped(7, {2, 5, 4})},
      {"All", &op::cross_entropy_grad, {f32({4, 7}), i32({4}, 0, 7), lse, dloss}, classes(7)},
      {"Padded", &op::cross_entropy_grad, {f32({4, 9}), i32({4}, 0, 7), lse, dloss}, classes(7)},
      {"HalfIsPadding", &op::cross_entropy_grad, {f32({4, 8}), i32({4}, 0, 3), lse, dloss}, classes(3)},
      {"Unlabelled", &op::cross_entropy_grad, {f32({4, 7}), i32({4}, -7, 7), lse, dloss}, classes(7)},
  };
  return with_gradients(std::move(cases), op::cross_entropy, 1);
}

namespace {

TEST(CrossEntropy, IsTheNegativeLogProbability) {
  auto out = evaluate({"", &op::cross_entropy, {f32({3, 3}), i32({3}, 0, 2)}, classes(2)},
                      {{0, std::log(3.0), 99, 0, 0, 99, 1, 2, 99}, {1, 0, -1}});
  EXPECT_NEAR(out[0][0], std::log(4.0 / 3), 1e-15);
  EXPECT_NEAR(out[0][1], std::log(2.0), 1e-15);
  EXPECT_EQ(out[0][2], 0);
  EXPECT_NEAR(out[1][0], std::log(4.0), 1e-15);
}

TEST(CrossEntropy, CapsTheLogits) {
  auto out = evaluate({"", &op::cross_entropy, {f32({1, 2}), i32({1}, 0, 2)}, capped(2, {2, 1, 4})}, {{3, -1}, {0}});
  EXPECT_NEAR(out[1][0], std::log(std::exp(2 * std::tanh(1.0)) + 1), 1e-15);  // of 2 tanh(4 / 4) and 2 tanh(0)
  EXPECT_NEAR(out[0][0], out[1][0] - 2 * std::tanh(1.0), 1e-15);
}

TEST(CrossEntropy, RefusesWrongShapesAndTargets) {
  expect_refused({"", &op::cross_entropy, {f32({3, 3}), i32({2}, 0, 2)}, classes(3)},
                 "expected logits (R, V) and i32 targets (R)");
  expect_refused({"", &op::cross_entropy, {f32({3, 3}), f32({3})}, classes(3)}, "got f32[3,3] and f32[3]");
  expect_refused({"", &op::cross_entropy, {f32({3, 3}), i32({3}, 0, 2)}, classes(4)}, "expected 1 to 3 classes, got 4");
  expect_user_error(
      [] {
        evaluate({"", &op::cross_entropy, {f32({1, 3}), i32({1}, 0, 2)}, classes(2)}, {{1, 2, 3}, {2}});
      },
      {"[cross_entropy] expected targets below 2, got 2"});
}

}  // namespace
}  // namespace tokamak::test
