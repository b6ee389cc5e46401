// The float forms of the scalar functions against the double forms, over every size of argument.
#include "ops/scalar_math.h"

#include "ops/interpret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tokamak {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

// Calls body(x) on a fine grid of [low, high] and on the powers of two in it.
template <typename Body>
void sweep(double low, double high, Body&& body) {
  constexpr int kPoints = 400000;
  for (int i = 0; i <= kPoints; ++i) body(float(low + (high - low) * i / kPoints));
  for (int e = -40; e < 20; ++e)
    for (double x : {std::ldexp(1.0, e), -std::ldexp(1.0, e)})
      if (x >= low && x <= high) body(float(x));
}

template <typename F>
double worst_absolute(double low, double high, F&& error) {
  double worst = 0;
  sweep(low, high, [&](float x) { worst = std::max(worst, std::fabs(error(x))); });
  return worst;
}

TEST(ScalarMath, ExpIsWithin2e7Relative) {
  EXPECT_LT(worst_absolute(-87.3, 88.7, [](float x) { return double(scalar::exp(x)) / std::exp(double(x)) - 1; }),
            2e-7);
}

TEST(ScalarMath, ExpAtTheEnds) {
  EXPECT_EQ(scalar::exp(-kInf), 0.0f);
  EXPECT_EQ(scalar::exp(-100.0f), 0.0f);
  EXPECT_EQ(scalar::exp(0.0f), 1.0f);
  EXPECT_EQ(scalar::exp(89.0f), kInf);
  EXPECT_EQ(scalar::exp(kInf), kInf);
  EXPECT_TRUE(std::isnan(scalar::exp(kNan)));
}

TEST(ScalarMath, TanhIsWithin3e7) {
  EXPECT_LT(worst_absolute(-20, 20, [](float x) { return double(scalar::tanh(x)) - std::tanh(double(x)); }), 3e-7);
  EXPECT_LT(worst_absolute(-0.6, 0.6,
                           [](float x) { return x == 0 ? 0 : double(scalar::tanh(x)) / std::tanh(double(x)) - 1; }),
            3e-7);
}

TEST(ScalarMath, TanhAtTheEnds) {
  EXPECT_EQ(scalar::tanh(kInf), 1.0f);
  EXPECT_EQ(scalar::tanh(-kInf), -1.0f);
  EXPECT_EQ(scalar::tanh(0.0f), 0.0f);
  EXPECT_EQ(scalar::tanh(1e30f), 1.0f);
  EXPECT_TRUE(std::isnan(scalar::tanh(kNan)));
}

TEST(ScalarMath, GeluIsWithin1e6) {
  auto error = [](float x) {
    return (double(scalar::gelu(x)) - scalar::gelu(double(x))) / std::max(1.0, std::fabs(double(x)));
  };
  EXPECT_LT(worst_absolute(-50, 50, error), 1e-6);
  EXPECT_EQ(scalar::gelu(0.0f), 0.0f);
  EXPECT_EQ(scalar::gelu(100.0f), 100.0f);
  EXPECT_EQ(scalar::gelu(-100.0f), 0.0f);
  EXPECT_EQ(scalar::gelu(kInf), kInf);
  EXPECT_TRUE(std::isnan(scalar::gelu(kNan)));
}

TEST(ScalarMath, SiluAndItsSlopeAreRightFarOut) {
  EXPECT_NEAR(scalar::silu(1.0), 1 / (1 + std::exp(-1.0)), 1e-15);
  EXPECT_NEAR(scalar::silu(-1.0), -1 / (1 + std::exp(1.0)), 1e-15);
  EXPECT_EQ(scalar::silu(-800.0), 0);
  EXPECT_EQ(scalar::silu(800.0f), 800.0f);
  EXPECT_EQ(scalar::silu_grad(-800.0, 2.0), 0);
  EXPECT_EQ(scalar::silu_grad(0.0, 2.0), 1);
  EXPECT_EQ(scalar::silu_grad(800.0, 2.0), 2);
}

TEST(ScalarMath, Relu2IsTheSquareOfThePositivePart) {
  EXPECT_EQ(scalar::relu2(3.0), 9);
  EXPECT_EQ(scalar::relu2(-3.0f), 0);
  EXPECT_EQ(scalar::relu2_grad(3.0, 0.5), 3);
  EXPECT_EQ(scalar::relu2_grad(-3.0, 0.5), 0);
  EXPECT_TRUE(std::isnan(scalar::relu2(kNan)));
  EXPECT_TRUE(std::isnan(scalar::relu2_grad(kNan, 0.5f)));
}

TEST(ScalarMath, GeluGradIsWithin1e6AndTheDerivative) {
  EXPECT_LT(
      worst_absolute(-50, 50,
                     [](float x) { return double(scalar::gelu_grad(x, 1.5f)) - scalar::gelu_grad(double(x), 1.5); }),
      2e-6);
  for (double x = -6; x < 6; x += 0.01)
    EXPECT_NEAR(scalar::gelu_grad(x, 2.0), (scalar::gelu(x + 1e-6) - scalar::gelu(x - 1e-6)) / 1e-6, 1e-8);
}

TEST(ScalarMath, RoundsToBf16AsTheNearestWithTiesToEven) {
  EXPECT_EQ(scalar::round_bf16(1.0f), 1.0f);
  EXPECT_EQ(scalar::round_bf16(1.0f + 0x1p-8f), 1.0f);                // a tie: down to even
  EXPECT_EQ(scalar::round_bf16(1.0f + 3 * 0x1p-8f), 1.0f + 0x1p-6f);  // a tie: up to even
  EXPECT_EQ(scalar::round_bf16(1.0f + 0x1.1p-8f), 1.0f + 0x1p-7f);
  EXPECT_EQ(scalar::round_bf16(-1.0f - 0x1.1p-8f), -1.0f - 0x1p-7f);
  EXPECT_EQ(scalar::round_bf16(std::numeric_limits<float>::max()), kInf);
  EXPECT_EQ(scalar::round_bf16(kInf), kInf);
  EXPECT_EQ(scalar::round_bf16(-kInf), -kInf);
  EXPECT_TRUE(std::isnan(scalar::round_bf16(kNan)));
  sweep(-300, 300, [](float x) {
    EXPECT_LE(std::fabs(scalar::round_bf16(x) - x), std::fabs(x) * 0x1p-8f) << x;
    EXPECT_EQ(scalar::round_bf16(scalar::round_bf16(x)), scalar::round_bf16(x));
  });
}

// Of one number over many salts, and of many numbers that lie together with one salt.
TEST(ScalarMath, RoundsToBf16ByChanceWithoutBias) {
  constexpr int kDraws = 20000;
  constexpr double kUnit = 0x1p-7, kTolerance = 4 * 0.5 / 141.4;  // four standard deviations of a mean of so many
  for (float x : {1.0f + 0x1p-8f, 1.0f + 0x1p-10f, 1.0f + 0x1.ep-8f, -1.0f - 0x1p-9f}) {
    double sum = 0, of_neighbours = 0;
    for (int i = 0; i < kDraws; ++i) {
      sum += scalar::stochastic_bf16(x, float(i)) - x;
      float near = x + float(i - kDraws / 2) * 0x1p-23f;
      of_neighbours += scalar::stochastic_bf16(near, 7.0f) - near;
    }
    EXPECT_LT(std::fabs(sum / kDraws), kTolerance * kUnit) << x;
    EXPECT_LT(std::fabs(of_neighbours / kDraws), kTolerance * kUnit) << x;
  }
}

TEST(ScalarMath, RoundingByChanceGivesOneOfTheTwoBeside) {
  sweep(-300, 300, [](float x) {
    float rounded = scalar::stochastic_bf16(x, 3.0f);
    EXPECT_EQ(scalar::round_bf16(rounded), rounded) << x;
    EXPECT_LT(std::fabs(rounded - x), std::fabs(x) * 0x1p-7 + 1e-30) << x;
    EXPECT_EQ(scalar::stochastic_bf16(rounded, 4.0f), rounded) << "what is one stays";
    EXPECT_EQ(scalar::stochastic_bf16(double(x), 3.0), double(rounded));
  });
  for (float salt : {0.0f, 1.0f, 2.0f, 1e6f}) {
    EXPECT_EQ(scalar::stochastic_bf16(kInf, salt), kInf);
    EXPECT_EQ(scalar::stochastic_bf16(-kInf, salt), -kInf);
    EXPECT_TRUE(std::isnan(scalar::stochastic_bf16(kNan, salt)));
    EXPECT_EQ(scalar::stochastic_bf16(0.0f, salt), 0.0f);
  }
}

TEST(ScalarMath, MaximumAndMinimumTakeTheFirstOfEquals) {
  EXPECT_EQ(scalar::maximum(1.0f, 2.0f), 2.0f);
  EXPECT_EQ(scalar::minimum(1.0f, 2.0f), 1.0f);
  EXPECT_FALSE(std::signbit(scalar::maximum(0.0f, -0.0f)));
  EXPECT_FALSE(std::signbit(scalar::minimum(0.0f, -0.0f)));
}

TEST(RoundTo, F16HasElevenBits) {
  EXPECT_EQ(round_to(DType::kF16, 1 + 0x1p-11), 1.0);
  EXPECT_EQ(round_to(DType::kF16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);
  EXPECT_EQ(round_to(DType::kF16, 65504.0), 65504.0);
  EXPECT_EQ(round_to(DType::kF16, 65519.0), 65504.0);
  EXPECT_EQ(round_to(DType::kF16, 65520.0), HUGE_VAL);
  EXPECT_EQ(round_to(DType::kF16, -1e9), -HUGE_VAL);
  EXPECT_EQ(round_to(DType::kF16, 0x1p-24), 0x1p-24);  // the smallest subnormal
  EXPECT_EQ(round_to(DType::kF16, 0x1p-26), 0.0);
}

}  // namespace
}  // namespace tokamak
