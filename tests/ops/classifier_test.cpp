#include "ops/classifier.h"
#include "ops/softcap.h"
#include "tests/ops/harness.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

Attrs attrs(int64_t chunk, int64_t classes, const Softcap& softcap = {}) {
  Attrs attrs{{"chunk", chunk}, {"classes", classes}};
  set_softcap(attrs, softcap);
  return attrs;
}

std::vector<CaseInput> inputs(int64_t R, int64_t C, int64_t V, double lowest_target, double classes) {
  return {f32({R, C}), f32({V, C}), i32({R}, lowest_target, classes), f32({R})};
}

}  // namespace

std::vector<OpCase> classifier_cases() {
  return {
      {"One", &op::classifier, inputs(4, 3, 7, 0, 7), attrs(4, 7)},
      {"Chunks", &op::classifier, inputs(6, 3, 7, 0, 7), attrs(2, 7)},
      {"UnevenChunks", &op::classifier, inputs(7, 3, 5, 0, 5), attrs(3, 5)},
      {"Padded", &op::classifier, inputs(6, 4, 9, 0, 7), attrs(3, 7)},
      {"Unlabelled", &op::classifier, inputs(9, 3, 5, -3, 5), attrs(3, 5)},
      {"Capped", &op::classifier, inputs(6, 4, 9, -1, 7), attrs(3, 7, {.cap = 1})},
      {"CappedAndMoved", &op::classifier, inputs(4, 3, 7, 0, 7), attrs(4, 7, {1, 2, 3})},
      {"Bf16", &op::classifier, {bf16({6, 3}), bf16({7, 3}), i32({6}, 0, 7), f32({6})}, attrs(2, 7)},
  };
}

namespace {

// x W^T = (ln 3, 0) with target 0, then (0, 0) with target 1.
TEST(Classifier, GivesLossesAndGradientsAndTheLastChunk) {
  auto out = evaluate({"", &op::classifier, {f32({2, 1}), f32({2, 1}), i32({2}, 0, 2), f32({2})}, attrs(1, 2)},
                      {{std::log(3.0), 0}, {1, 0}, {0, 1}, {1, 0.5}});
  EXPECT_NEAR(out[0][0], std::log(4.0 / 3), 1e-15);
  EXPECT_NEAR(out[0][1], std::log(2.0), 1e-15);
  EXPECT_NEAR(out[1][0], -0.25, 1e-15);  // (3/4 - 1) * 1 of weight 1
  EXPECT_NEAR(out[1][1], 0.25, 1e-15);   // 1/2 * 0.5
  EXPECT_NEAR(out[2][0], -0.25 * std::log(3.0), 1e-15);
  EXPECT_NEAR(out[2][1], 0.25 * std::log(3.0), 1e-15);
  EXPECT_NEAR(out[3][0], 0.25, 1e-15);
  EXPECT_NEAR(out[3][1], -0.25, 1e-15);
}

TEST(Classifier, CountsThreeMatmulsAndTheWeightOnceAChunk) {
  auto cost_of = [](int64_t chunk) {
    OpCase c{"", &op::classifier, {bf16({64, 8}), bf16({32, 8}), i32({64}, 0, 32), f32({64})}, attrs(chunk, 32)};
    Graph graph = case_graph(c);
    return node_cost(graph, graph.nodes()[0]);
  };
  EXPECT_EQ(cost_of(64).flops, 3 * 2.0 * 64 * 32 * 8);
  EXPECT_EQ(cost_of(64).bytes, 5 * 64 * 32 * 2 + 3 * 64 * 8 * 2 + 3 * 64 * 4 + 2 * 32 * 8 * 2 + 32 * 8 * 4);
  EXPECT_EQ(cost_of(16).bytes - cost_of(64).bytes, 3 * (2 * 32 * 8 * 2 + 2 * 32 * 8 * 4));
}

TEST(Classifier, RefusesWrongShapesAndTargets) {
  expect_refused({"", &op::classifier, {f32({4, 3}), f32({7, 2}), i32({4}, 0, 7), f32({4})}, attrs(2, 7)},
                 "expected x (R, C) and a weight (V, C) of one float type, got f32[4,3] and f32[7,2]");
  expect_refused({"", &op::classifier, {f32({4, 3}), bf16({7, 3}), i32({4}, 0, 7), f32({4})}, attrs(2, 7)},
                 "of one float type");
  expect_refused({"", &op::classifier, {f32({4, 3}), f32({7, 3}), i32({4}, 0, 7), f32({})}, attrs(2, 7)},
                 "expected targets i32[4] and dloss f32[4], got i32[4] and f32[]");
  std::vector<CaseInput> own = inputs(4, 3, 7, 0, 7);
  own.insert(own.end(), {f32({4, 3}), f32({7, 3}), f32({}), f32({}), f32({7, 3}), f32({}), f32({})});
  expect_refused({"", &op::classifier, own, attrs(2, 7)},
                 "expected f32[7,3] transposed, a scale f32[] and its inverse");
  own.resize(9);
  expect_refused({"", &op::classifier, own, attrs(2, 7)}, "expected 4, 8 or 11 inputs, got 9");
  expect_refused({"", &op::classifier, inputs(4, 3, 7, 0, 7), attrs(2, 8)}, "expected 1 to 7 classes, got 8");
  expect_refused({"", &op::classifier, inputs(4, 3, 7, 0, 7), attrs(5, 7)}, "expected chunks of 1 to 4 rows, got 5");
  expect_user_error(
      [] {
        evaluate({"", &op::classifier, inputs(1, 1, 3, 0, 3), attrs(1, 2)}, {{1}, {1, 2, 3}, {2}, {1}});
      },
      {"[classifier] expected targets below 2, got 2"});
}

}  // namespace
}  // namespace tokamak::test
