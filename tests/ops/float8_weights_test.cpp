#include "ops/float8_weights.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

Attrs stored(Shape copies) { return {{"stored", std::move(copies)}}; }

}  // namespace

std::vector<OpCase> float8_scales_cases();  // float8_scales_test.cpp

// Less than a tile, parts of tiles; the first in f32, which is rounded to bf16 before.
std::vector<OpCase> float8_weights_cases() {
  std::vector<CaseInput> many{f32({144, 272}), bf16({16, 16}), bf16({32, 400}, -30, 2), f32({272, 16}, 0, 1e-3)};
  std::vector<OpCase> cases{
      {"Both", &op::float8_weights, many, stored({3, 3, 3, 3}), 0},
      {"Some", &op::float8_weights, many, stored({1, 2, 3, 2}), 0},
      {"One", &op::float8_weights, {bf16({48, 160})}, stored({2}), 0},
      {"Longest", &op::float8_weights, many, stored({6, 1, 7, 5}), 1e-6},
  };
  for (OpCase& c : float8_scales_cases()) cases.push_back(std::move(c));
  return cases;
}

namespace {

// The largest becomes 448; what is half a step more than a number of eight bits goes to the even one.
TEST(Float8Weights, ScalesTheLargestTo448) {
  std::vector<double> weight(256, 0);
  weight[0] = -224, weight[17] = 112, weight[2] = 4.5, weight[3] = 4.25;
  auto out = evaluate({"", &op::float8_weights, {f32({16, 16})}, stored({3})}, {weight});
  EXPECT_EQ(out[0][0], -448);
  EXPECT_EQ(out[0][17], 224);
  EXPECT_EQ(out[0][2], 9);
  EXPECT_EQ(out[0][3], 8);
  EXPECT_EQ(out[1][17], 224);
  EXPECT_EQ(out[1][2 * 16], 9);
  EXPECT_EQ(out[2][0], 0.5);
}

// The kernel rounds as the ops do that it stands for, one after the other.
TEST(Float8Weights, HasTheBitsOfItsDecomposition) { expect_bits_of_decomposition(float8_weights_cases()[0]); }

TEST(Float8Weights, FindsTheLongestColumn) {
  std::vector<double> weight(256, 1);
  weight[16 * 3 + 5] = 7;  // 15 + 49 squares in its column
  auto out = evaluate({"", &op::float8_weights, {f32({16, 16})}, stored({5})}, {weight});
  EXPECT_EQ(out[2][0], 8);
}

TEST(Float8Weights, ZerosStayZeros) {
  auto out = evaluate({"", &op::float8_weights, {f32({16, 16})}, stored({1})}, {std::vector<double>(256, 0)});
  for (double v : out[0].data) EXPECT_EQ(v, 0);
  EXPECT_GT(out[1][0], 0) << "an inverse that is a number";
}

TEST(Float8Weights, KnowsWhatItsOutputsAre) {
  Graph graph = case_graph(float8_weights_cases()[1]);
  const Node& node = graph.nodes()[0];
  std::vector<Float8Weight> weights = float8_outputs(node);
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_EQ(weights[0].turned, kNoValue);
  EXPECT_EQ(weights[1].plain, kNoValue);
  EXPECT_EQ(graph.shape(weights[3].turned), (Shape{16, 272}));
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(weight_of_output(node, weights[i].scale), i);
    for (ValueId copy : {weights[i].plain, weights[i].turned})
      if (copy != kNoValue) EXPECT_EQ(weight_of_output(node, copy), i);
  }
}

TEST(Float8Weights, RefusesWhatItsKernelsDoNotKnow) {
  expect_refused({"", &op::float8_weights, {f32({16, 24})}, stored({3})}, "of sizes that 16 divides, got f32[16,24]");
  expect_refused({"", &op::float8_weights, {i32({16, 16}, 0, 5)}, stored({3})}, "expected matrices in f32 or bf16");
  expect_refused({"", &op::float8_weights, {f32({16, 16})}, stored({4})},
                 "expected 1, 2 or 3, or 4 more, in stored, got 4");
  expect_refused({"", &op::float8_weights, {f32({16, 16})}, stored({3, 3})}, "what is stored of 1 weights, got 2");
}

}  // namespace
}  // namespace tokamak::test
