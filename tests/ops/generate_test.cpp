#include "ops/generate.h"
#include "tests/ops/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tokamak::test {

std::vector<OpCase> generate_cases() {
  Attrs half{{"dtype", std::string("f32")}, {"shape", Shape{2, 3}}, {"value", 0.5}};
  return {
      {"Half", &op::constant, {}, half, 0},
      {"Scalar", &op::constant, {}, {{"dtype", std::string("f32")}, {"shape", Shape{}}, {"value", -2.0}}, 0},
      {"Bf16", &op::constant, {}, {{"dtype", std::string("bf16")}, {"shape", Shape{3}}, {"value", 1.5}}, 0},
      {"LastDim", &op::iota, {}, {{"dim", int64_t(2)}, {"shape", Shape{2, 3, 5}}}, 0},
      {"MiddleDim", &op::iota, {}, {{"dim", int64_t(1)}, {"shape", Shape{2, 3, 5}}}, 0},
      {"FirstDim", &op::iota, {}, {{"dim", int64_t(0)}, {"shape", Shape{2, 3, 5}}}, 0},
      {"Long", &op::iota, {}, {{"dim", int64_t(0)}, {"shape", Shape{5000}}}, 0},
      {"Periodic", &op::iota, {}, {{"dim", int64_t(0)}, {"period", int64_t(5)}, {"shape", Shape{12, 3}}}, 0},
      {"LongPeriodic", &op::iota, {}, {{"dim", int64_t(0)}, {"period", int64_t(700)}, {"shape", Shape{5000}}}, 0},
      {"Matrix", &op::random_uniform, {rng()}, {{"shape", Shape{7, 9}}, {"stream", int64_t(3)}}, 0},
      {"Long", &op::random_uniform, {rng()}, {{"shape", Shape{5001}}, {"stream", int64_t(0)}}, 0},
      {"Scalar", &op::random_uniform, {rng()}, {{"shape", Shape{}}, {"stream", int64_t(1)}}, 0},
      {"Matrices",
       &op::random_uniform,
       {rng()},
       {{"matrix", Shape{35, 50}}, {"shape", Shape{3, 35, 50}}, {"stream", int64_t(3)}},
       0},
  };
}

namespace {

TEST(Iota, CountsAlongItsDim) {
  auto iota = [](int64_t dim) {
    return evaluate({"", &op::iota, {}, {{"dim", dim}, {"shape", Shape{2, 3}}}}, {})[0].data;
  };
  EXPECT_EQ(iota(0), (std::vector<double>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(iota(1), (std::vector<double>{0, 1, 2, 0, 1, 2}));
  expect_refused({"", &op::iota, {}, {{"dim", int64_t(2)}, {"shape", Shape{2, 3}}}}, "expected a dim of [2,3], got 2");
}

TEST(Iota, BeginsAgainAfterItsPeriod) {
  auto iota = [](int64_t dim, int64_t period, Shape shape) {
    return evaluate({"", &op::iota, {}, {{"dim", dim}, {"period", period}, {"shape", shape}}}, {})[0].data;
  };
  EXPECT_EQ(iota(0, 3, {7}), (std::vector<double>{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(iota(0, 2, {3, 2}), (std::vector<double>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(iota(1, 2, {2, 3}), (std::vector<double>{0, 1, 0, 0, 1, 0}));
  expect_refused({"", &op::iota, {}, {{"dim", int64_t(0)}, {"period", int64_t(0)}, {"shape", Shape{2}}}},
                 "expected a period of 1 or more, got 0");
}

TEST(RandomUniform, DependsOnSeedStepAndStreamAlone) {
  auto draw = [](double seed, double step, int64_t stream, Shape shape) {
    return evaluate({"", &op::random_uniform, {rng()}, {{"shape", shape}, {"stream", stream}}}, {{seed, step}})[0].data;
  };
  std::vector<double> base = draw(1, 2, 3, {4, 5});
  EXPECT_EQ(base, draw(1, 2, 3, {20}));
  EXPECT_NE(base, draw(2, 2, 3, {20}));
  EXPECT_NE(base, draw(1, 3, 3, {20}));
  EXPECT_NE(base, draw(1, 2, 4, {20}));
  EXPECT_EQ(std::set<double>(base.begin(), base.end()).size(), 20u);
  for (double u : base) EXPECT_TRUE(u >= 0 && u < 1) << u;
}

TEST(RandomUniform, IsUniform) {
  auto u = evaluate({"", &op::random_uniform, {rng()}, {{"shape", Shape{100000}}, {"stream", int64_t(0)}}}, {{7, 0}})[0]
               .data;
  double mean = 0, square = 0;
  for (double v : u) mean += v / 1e5, square += v * v / 1e5;
  EXPECT_NEAR(mean, 0.5, 0.005);
  EXPECT_NEAR(square, 1.0 / 3, 0.005);
}

TEST(RandomUniform, RefusesAnotherRng) {
  expect_refused({"", &op::random_uniform, {f32({2})}, {{"shape", Shape{2}}, {"stream", int64_t(0)}}},
                 "expected rng to be i32[2] (seed, step), got f32[2]");
}

}  // namespace
}  // namespace tokamak::test
