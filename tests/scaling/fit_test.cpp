#include "scaling/fit.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tokamak {
namespace {

// Normal, of so many parts of 1.
double noise(uint64_t seed, int64_t i, double size) {
  double u = uniform_element(seed, 2 * i, 7) + 1e-9, v = uniform_element(seed, 2 * i + 1, 7);
  return size * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// Five sizes from 10M to 160M, each of four lengths.
std::vector<ScalingPoint> points_of(const ParametricLaw& law, double noise_size = 0, uint64_t seed = 1) {
  std::vector<ScalingPoint> points;
  for (double size = 10e6; size < 200e6; size *= 2)
    for (double ratio : {5.0, 10.0, 20.0, 40.0}) {
      ModelAndData at = {size, ratio * size};
      points.push_back({"run", at, law.loss(at) * (1 + noise(seed, int64_t(points.size()), noise_size))});
    }
  return points;
}

TEST(Fit, FindsTheConstantsOfALaw) {
  for (const ParametricLaw& law : {kBesiroglu, kHoffmann3}) {
    std::string why;
    std::optional<Fitted<ParametricLaw>> fitted = fit_law(points_of(law), {.draws = 3}, why);
    ASSERT_TRUE(fitted) << why;
    EXPECT_NEAR(fitted->law.E, law.E, 1e-3 * law.E);
    EXPECT_NEAR(fitted->law.A, law.A, 1e-2 * law.A);
    EXPECT_NEAR(fitted->law.B, law.B, 1e-2 * law.B);
    EXPECT_NEAR(fitted->law.alpha, law.alpha, 1e-3);
    EXPECT_NEAR(fitted->law.beta, law.beta, 1e-3);
    EXPECT_LT(fitted->error, 1e-7);
  }
}

TEST(Fit, FindsTheConstantsOfACurveOfCompute) {
  ComputeCurve curve = {1.9, 2e3, 0.18};
  std::vector<ScalingPoint> points;
  for (double size = 10e6; size < 400e6; size *= 2) {
    ModelAndData at = {size, 20 * size};
    points.push_back({"run", at, curve.loss(at.flops())});
  }
  std::string why;
  std::optional<Fitted<ComputeCurve>> fitted = fit_curve(points, {.draws = 3}, why);
  ASSERT_TRUE(fitted) << why;
  EXPECT_NEAR(fitted->law.E, 1.9, 1e-3);
  EXPECT_NEAR(fitted->law.K, 2e3, 10);
  EXPECT_NEAR(fitted->law.gamma, 0.18, 1e-3);
}

// Of many noisy sets of points, nearly all have what is true within their interval; and it is no wider than need be.
TEST(Fit, IntervalsHoldWhatIsTrue) {
  constexpr int kSets = 40;
  int held = 0;
  double truth = kBesiroglu.loss(kBesiroglu.best(1e19));
  std::vector<double> widths;
  for (int set = 0; set < kSets; ++set) {
    std::string why;
    Fitted<ParametricLaw> fitted = *fit_law(points_of(kBesiroglu, 0.003, uint64_t(set)), {.draws = 200}, why);
    std::vector<double> losses;
    for (const ParametricLaw& law : fitted.draws) losses.push_back(law.loss(law.best(1e19)));
    Interval interval = interval95(losses);
    held += interval.low <= truth && truth <= interval.high;
    widths.push_back(interval.high - interval.low);
  }
  EXPECT_GE(held, 34) << "of " << kSets;
  std::sort(widths.begin(), widths.end());
  EXPECT_LT(widths[kSets / 2], 0.1);
  EXPECT_GT(widths[kSets / 2], 0.005);
}

// One run that went wrong hardly moves the others' law.
TEST(Fit, ARunThatWentWrongCountsLittle) {
  std::vector<ScalingPoint> points = points_of(kBesiroglu, 0.001);
  points[7].loss *= 1.3;
  std::string why;
  auto loss = [&](double huber) {
    ParametricLaw law = fit_law(points, {.huber = huber, .draws = 0}, why)->law;
    return law.loss(law.best(1e18));
  };
  double truth = kBesiroglu.loss(kBesiroglu.best(1e18));
  EXPECT_NEAR(loss(0.001), truth, 0.01);
  EXPECT_GT(std::abs(loss(0) - truth), 3 * std::abs(loss(0.001) - truth));
}

TEST(Fit, TheSameSeedGivesTheSameDraws) {
  std::vector<ScalingPoint> points = points_of(kBesiroglu, 0.01);
  std::string why;
  FitOptions options{.draws = 5};
  EXPECT_EQ(fit_law(points, options, why)->draws[4].E, fit_law(points, options, why)->draws[4].E);
  FitOptions other{.draws = 5, .seed = 2};
  EXPECT_NE(fit_law(points, options, why)->draws[4].E, fit_law(points, other, why)->draws[4].E);
}

TEST(Fit, TooFewRunsAreToldWhatIsMissing) {
  std::vector<ScalingPoint> points = points_of(kBesiroglu);
  std::string why;
  EXPECT_FALSE(fit_law(std::span(points).first(8), {}, why)) << "two sizes";
  EXPECT_NE(why.find("8 runs of 3 sizes and 3 lengths"), std::string::npos) << why;
  EXPECT_NE(why.find("8 of 2 and 5"), std::string::npos) << why;
  EXPECT_FALSE(fit_law(std::span(points).first(7), {}, why));
  EXPECT_TRUE(fit_curve(std::span(points).first(5), {.draws = 1}, why));
  EXPECT_FALSE(fit_curve(std::span(points).first(4), {}, why));
  EXPECT_NE(why.find("5 runs"), std::string::npos) << why;
}

TEST(Fit, IntervalHas95Of100) {
  std::vector<double> values;
  for (int i = 1000; i >= 0; --i) values.push_back(i);
  EXPECT_EQ(interval95(values).low, 25);
  EXPECT_EQ(interval95(values).high, 975);
}

}  // namespace
}  // namespace tokamak
