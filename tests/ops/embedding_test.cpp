#include "ops/embedding.h"
#include "tests/ops/harness.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak::test {

std::vector<OpCase> embedding_cases() {
  Attrs rows{{"rows", int64_t(5)}};
  return {
      {"Batch", &op::embedding, {f32({5, 3}), i32({2, 4}, 0, 5)}, {}, 0},
      {"Vector", &op::embedding, {f32({5, 3}), i32({4}, 0, 5)}, {}, 0},
      {"Scalar", &op::embedding, {f32({5, 3}), i32({}, 0, 5)}, {}, 0},
      {"Bf16", &op::embedding, {bf16({5, 3}), i32({4}, 0, 5)}, {}, 0},
      {"Batch", &op::embedding_grad, {f32({2, 4, 3}), i32({2, 4}, 0, 5)}, rows},
      {"OnBase", &op::embedding_grad, {f32({2, 4, 3}), i32({2, 4}, 0, 5), f32({5, 3})}, rows},
      {"Wide", &op::embedding_grad, {f32({30, 70}), i32({30}, 0, 5)}, rows},
      {"Bf16", &op::embedding_grad, {bf16({8, 3}), i32({8}, 0, 5)}, rows},
      {"Bf16OnBf16", &op::embedding_grad, {bf16({8, 3}), i32({8}, 0, 5), bf16({5, 3})}, rows, 8e-3},
      {"F32OnBf16", &op::embedding_grad, {f32({30, 70}), i32({30}, 0, 5), bf16({5, 70})}, rows, 8e-3},
      {"Bf16OnF32", &op::embedding_grad, {bf16({8, 3}), i32({8}, 0, 5), f32({5, 3})}, rows},
  };
}

namespace {

TEST(Embedding, PicksAndAddsUpRows) {
  EXPECT_EQ(evaluate({"", &op::embedding, {f32({2, 2}), i32({3}, 0, 2)}}, {{1, 2, 3, 4}, {1, 0, 1}})[0].data,
            (std::vector<double>{3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(evaluate({"", &op::embedding_grad, {f32({3, 2}), i32({3}, 0, 2)}, {{"rows", int64_t(3)}}},
                     {{1, 2, 3, 4, 5, 6}, {1, 0, 1}})[0]
                .data,
            (std::vector<double>{3, 4, 6, 8, 0, 0}));
}

TEST(Embedding, RefusesWrongTypesAndIds) {
  expect_refused({"", &op::embedding, {f32({5}), i32({3}, 0, 2)}},
                 "expected a table (V, C) and i32 ids, got f32[5] and i32[3]");
  expect_refused({"", &op::embedding, {f32({5, 2}), f32({3})}}, "got f32[5,2] and f32[3]");
  expect_refused({"", &op::embedding_grad, {f32({3, 2}), i32({4}, 0, 2)}, {{"rows", int64_t(3)}}},
                 "expected dy (..., C)");
  expect_refused({"", &op::embedding_grad, {f32({3, 2}), i32({3}, 0, 2), f32({2, 2})}, {{"rows", int64_t(3)}}},
                 "expected a base f32[3,2]");
  for (double id : {-1.0, 2.0})
    expect_user_error(
        [&] {
          evaluate({"", &op::embedding, {f32({2, 2}), i32({1}, 0, 2)}}, {{1, 2, 3, 4}, {id}});
        },
        {"[embedding] expected ids below 2, got"});
}

}  // namespace
}  // namespace tokamak::test
