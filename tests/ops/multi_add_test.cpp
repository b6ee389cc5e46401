#include "ops/multi_add.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs terms(int64_t n) { return {{"terms", n}}; }

}  // namespace

std::vector<OpCase> multi_add_cases() {
  std::vector<CaseInput> two, four;
  for (int term = 0; term < 4; ++term)
    for (const CaseInput& x : {f32({3, 5}), f32({}), f32({70, 1001}), f32({1}), f32({2, 3, 4})}) {
      if (term < 2) two.push_back(x);
      four.push_back(x);
    }
  return {
      {"Two", &op::multi_add, two, terms(2)},
      {"Four", &op::multi_add, four, terms(4)},
      {"OneOfThree", &op::multi_add, {f32({1000}), f32({1000}), f32({1000})}, terms(3)},
  };
}

namespace {

// In f64 1 + 2^-53 is 1, and from the other end the sum would be 1 + 2^-52.
TEST(MultiAdd, AddsFromTheFirstTermOn) {
  OpCase three{"", &op::multi_add, {f32({1}), f32({2}), f32({1}), f32({2}), f32({1}), f32({2})}, terms(3)};
  auto out = evaluate(three, {{1}, {1, 2}, {0x1p-53}, {3, 4}, {0x1p-53}, {5, 6}});
  EXPECT_EQ(out[0].data, (std::vector<double>{1}));
  EXPECT_EQ(out[1].data, (std::vector<double>{9, 12}));
}

TEST(MultiAdd, RefusesTermsThatDoNotMatch) {
  expect_refused({"", &op::multi_add, {f32({2}), f32({3})}, terms(2)},
                 "expected terms of one shape, got f32[2] and f32[3]");
  expect_refused({"", &op::multi_add, {f32({2}), f32({2}), f32({2})}, terms(2)},
                 "expected a multiple of 2 inputs for as many terms, got 3");
  expect_refused({"", &op::multi_add, {f32({2}), f32({2})}, terms(1)}, "expected at least 2 terms, got 1");
  expect_refused({"", &op::multi_add, {bf16({2}), bf16({2})}, terms(2)}, "expected f32 tensors, got bf16[2]");
}

}  // namespace
}  // namespace tokamak::test
