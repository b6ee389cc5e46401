#include "ops/argmax.h"

#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs classes(int64_t n) { return {{"classes", n}}; }

}  // namespace

std::vector<OpCase> argmax_cases() {
  return {
      {"All", &op::argmax, {f32({4, 7}, -3, 3)}, classes(7)},
      {"Padded", &op::argmax, {f32({4, 9}, -3, 3)}, classes(7)},
      {"One", &op::argmax, {f32({3, 5})}, classes(1)},
      {"Long", &op::argmax, {f32({3, 5001}, -3, 3)}, classes(5000)},
      {"ManyEqual", &op::argmax, {bf16({4, 3000}, -3, 3)}, classes(2999)},
  };
}

namespace {

TEST(Argmax, TakesTheFirstOfTheLargest) {
  auto out = evaluate({"", &op::argmax, {f32({3, 4})}, classes(3)}, {{1, 5, 5, 9, -3, -2, -2, 9, 7, 1, 7, 9}});
  EXPECT_EQ(out[0].data, (std::vector<double>{1, 1, 0}));
}

TEST(Argmax, RefusesWhatDoesNotFit) {
  expect_refused({"", &op::argmax, {f32({3})}, classes(3)}, "expected logits (R, V), got f32[3]");
  expect_refused({"", &op::argmax, {f32({3, 4})}, classes(5)}, "expected 1 to 4 classes, got 5");
}

}  // namespace
}  // namespace tokamak::test
