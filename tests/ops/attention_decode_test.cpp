#include "ops/attention_decode.h"

#include "ops/attention.h"
#include "ops/interpret.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs attrs(int64_t head_width) { return {{"head_width", head_width}, {"scale", 0.6}}; }
Attrs with_window(int64_t head_width, int64_t window) {
  Attrs all = attrs(head_width);
  all.set("window", window);
  return all;
}

}  // namespace

std::vector<OpCase> attention_decode_cases() {
  return {
      {"First", &op::attention_decode, {f32({2, 3, 18}), f32({2, 7, 12}), i32({2}, 0, 1)}, attrs(3)},
      {"Later", &op::attention_decode, {f32({2, 1, 18}), f32({2, 7, 12}), i32({2}, 4, 5)}, attrs(2)},
      {"Ragged", &op::attention_decode, {f32({4, 2, 18}), f32({4, 9, 12}), i32({4}, 0, 8)}, attrs(2)},
      {"Last", &op::attention_decode, {f32({1, 2, 6}), f32({1, 7, 4}), i32({1}, 5, 6)}, attrs(2)},
      {"Window", &op::attention_decode, {f32({4, 2, 18}), f32({4, 9, 12}), i32({4}, 0, 8)}, with_window(2, 3)},
      {"WindowOfOne", &op::attention_decode, {f32({1, 1, 6}), f32({1, 7, 4}), i32({1}, 5, 6)}, with_window(2, 1)},
  };
}

namespace {

TEST(AttentionDecode, RefusesWrongShapes) {
  expect_refused({"", &op::attention_decode, {f32({2, 3, 18}), f32({2, 7, 12}), i32({2}, 0, 1)}, attrs(4)},
                 "expected a packed projection (B, T, 3C) of heads of width 4, got f32[2,3,18]");
  expect_refused({"", &op::attention_decode, {f32({2, 3, 18}), f32({2, 2, 12}), i32({2}, 0, 1)}, attrs(3)},
                 "expected a cache (2, 3 or more, 12), got [2,2,12]");
  expect_refused({"", &op::attention_decode, {f32({2, 3, 18}), f32({2, 7, 12}), i32({}, 0, 1)}, attrs(3)},
                 "expected positions i32[2], got i32[]");
}

// One token at a time, and a few at once, give what the whole sequence gives.
TEST(AttentionDecode, EqualsCausalAttention) {
  constexpr int64_t T = 6, C = 4;
  OpCase whole{"",
               &op::attention,
               {f32({1, T, 3 * C})},
               {{"causal", true}, {"dropout", 0.0}, {"heads", 2}, {"scale", 0.6}, {"stream", 4}}};
  std::vector<HostTensor> qkv = case_arguments(whole);
  HostTensor expected = interpret(case_graph(whole), qkv).results[0];
  HostTensor cache({DType::kF32, {1, T, 2 * C}});
  int64_t position = 0;
  for (int64_t t : {1, 2, 1, 2}) {
    OpCase step{"", &op::attention_decode, {f32({1, t, 3 * C}), f32({1, T, 2 * C}), i32({1}, 0, T)}, attrs(2)};
    HostTensor next({DType::kF32, {1, t, 3 * C}});
    for (int64_t i = 0; i < next.size(); ++i) next[i] = qkv[0][position * 3 * C + i];
    auto out = interpret(case_graph(step), {next, cache, HostTensor({DType::kI32, {1}}, {double(position)})}).results;
    for (int64_t i = 0; i < out[0].size(); ++i) EXPECT_NEAR(out[0][i], expected[position * C + i], 1e-12);
    cache = out[1];
    position += t;
  }
}

}  // namespace
}  // namespace tokamak::test
