#include "ops/norm.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

const Attrs kEps{{"eps", 1e-5}};

}  // namespace

std::vector<OpCase> norm_cases() {
  std::vector<OpCase> cases = {
      {"Rows", &op::softmax, {f32({3, 7}, -3, 3)}},
      {"Batch", &op::softmax, {f32({2, 3, 2, 5}, -3, 3)}},
      {"Vector", &op::softmax, {f32({9}, -3, 3)}},
      {"OneColumn", &op::softmax, {f32({4, 1}, -3, 3)}},
      {"Large", &op::softmax, {f32({2, 9}, 500, 900)}},
      {"Long", &op::softmax, {f32({2, 5001}, -3, 3)}},
      {"Bf16", &op::softmax, {bf16({3, 7}, -3, 3)}, {}, 1e-2},
      {"Rows", &op::softmax_grad, {f32({3, 7}, 0, 0.3), f32({3, 7})}},
      {"Vector", &op::softmax_grad, {f32({7}, 0, 0.3), f32({7})}},
      {"Rows", &op::layer_norm, {f32({3, 7}), f32({7}), f32({7})}, kEps},
      {"NoBias", &op::layer_norm, {f32({3, 7}), f32({7})}, kEps},
      {"Batch", &op::layer_norm, {f32({2, 3, 5}), f32({5}), f32({5})}, kEps},
      {"Vector", &op::layer_norm, {f32({9}), f32({9}), f32({9})}, kEps},
      {"Shifted", &op::layer_norm, {f32({3, 64}, 9, 11), f32({64}), f32({64})}, kEps, 1e-4},
      {"Long", &op::layer_norm, {f32({2, 5001}), f32({5001}), f32({5001})}, kEps, 1e-4},
      {"Bf16", &op::layer_norm, {bf16({3, 8}), f32({8}), f32({8})}, kEps, 2e-2},
      {"Rows", &op::layer_norm_grad, {f32({3, 7}), f32({3, 7}), f32({7}), f32({3, 1}, -0.1, 0.1), f32({3, 1}, 0.5, 2)}},
      {"Batch",
       &op::layer_norm_grad,
       {f32({2, 3, 5}), f32({2, 3, 5}), f32({5}), f32({2, 3, 1}, -0.1, 0.1), f32({2, 3, 1}, 0.5, 2)}},
      {"Rows", &op::layer_norm_grad_params, {f32({3, 7}), f32({3, 7}), f32({3, 1}, -0.1, 0.1), f32({3, 1}, 0.5, 2)}},
      {"Batch",
       &op::layer_norm_grad_params,
       {f32({2, 9, 5}), f32({2, 9, 5}), f32({2, 9, 1}, -0.1, 0.1), f32({2, 9, 1}, 0.5, 2)}},
      {"Vector", &op::layer_norm_grad_params, {f32({5}), f32({5}), f32({1}), f32({1}, 0.5, 2)}},
  };
  return with_gradients(std::move(cases), op::layer_norm, 1);
}

namespace {

TEST(Softmax, SumsToOne) {
  auto y = evaluate({"", &op::softmax, {f32({1, 3})}}, {{std::log(1.0), std::log(2.0), std::log(5.0)}})[0];
  EXPECT_NEAR(y[0], 0.125, 1e-15);
  EXPECT_NEAR(y[1], 0.25, 1e-15);
  EXPECT_NEAR(y[2], 0.625, 1e-15);
}

TEST(Softmax, RefusesAScalar) {
  expect_refused({"", &op::softmax, {f32({})}}, "expected one dim or more, got a scalar");
}

TEST(LayerNorm, NormalisesRows) {
  auto out =
      evaluate({"", &op::layer_norm, {f32({1, 2}), f32({2}), f32({2})}, {{"eps", 0.0}}}, {{1, 5}, {1, 10}, {0, 3}});
  EXPECT_EQ(out[0].data, (std::vector<double>{-1, 13}));
  EXPECT_EQ(out[1].data, std::vector<double>{3});
  EXPECT_EQ(out[2].data, std::vector<double>{0.5});
}

TEST(LayerNorm, RefusesShapesThatDoNotFit) {
  expect_refused({"", &op::layer_norm, {f32({3, 7}), f32({3})}, kEps}, "expected input 1 to be [7], got f32[3]");
  expect_refused({"", &op::layer_norm, {f32({3, 7}), f32({7}), f32({1, 7})}, kEps},
                 "expected input 2 to be [7], got f32[1,7]");
  expect_refused({"", &op::softmax_grad, {f32({3}), f32({4})}},
                 "expected inputs 0 and 1 of one shape, got f32[3] and f32[4]");
}

}  // namespace
}  // namespace tokamak::test
