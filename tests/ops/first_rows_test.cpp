#include "ops/first_rows.h"

#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {

std::vector<OpCase> first_rows_cases() {
  return {
      {"Some", &op::first_rows, {f32({5, 4})}, {{"rows", int64_t{3}}}, 0},
      {"OfAVector", &op::first_rows, {f32({7})}, {{"rows", int64_t{6}}}, 0},
      {"Bf16", &op::first_rows, {bf16({4, 2})}, {{"rows", int64_t{1}}}, 0},
  };
}

namespace {

TEST(FirstRows, AreNoMoreThanThereAre) {
  expect_refused({"", &op::first_rows, {f32({2, 3})}, {{"rows", int64_t{3}}}}, "as many rows as f32[2,3] has");
}

}  // namespace
}  // namespace tokamak::test
