#include "scaling/least_squares.h"

#include "base/random.h"
#include "scaling/simplex.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tokamak {
namespace {

// y = a exp(-b x) + c, with what the random numbers add.
LeastSquares decay(const std::vector<double>& x, const std::vector<double>& y, double huber) {
  return {.unknowns = 3,
          .points = x.size(),
          .residual =
              [&](size_t i, const Unknowns& u) {
                double fall = std::exp(-u[1] * x[i]);
                return Residual{u[0] * fall + u[2] - y[i], {fall, -u[0] * x[i] * fall, 1}};
              },
          .huber = huber};
}

struct Data {
  std::vector<double> x, y;
  explicit Data(uint64_t seed, double noise) {
    for (int i = 0; i < 15; ++i) {
      x.push_back(0.3 * i);
      y.push_back(3 * std::exp(-0.8 * x.back()) + 1.5 + noise * (uniform_element(seed, i, 0) - 0.5));
    }
  }
};

TEST(LeastSquares, FindsWhatIsThere) {
  Data data(1, 0);
  LeastSquaresResult found = minimize(decay(data.x, data.y, 0), {1, 0.1, 0});
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.at[0], 3, 1e-6);
  EXPECT_NEAR(found.at[1], 0.8, 1e-6);
  EXPECT_NEAR(found.at[2], 1.5, 1e-6);
}

// With Huber's function and without, and points of which one is far off.
TEST(LeastSquares, AgreesWithASearchWithoutDerivatives) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (double huber : {0.0, 0.05}) {
      Data data(seed, 0.3);
      data.y[4] += 1;
      LeastSquares problem = decay(data.x, data.y, huber);
      LeastSquaresResult fast = minimize(problem, {1, 0.5, 0}), slow = minimize_by_simplex(problem, {1, 0.5, 0});
      EXPECT_NEAR(fast.objective, slow.objective, 1e-7 * slow.objective) << seed << " " << huber;
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(fast.at[i], slow.at[i], 2e-3) << seed << " " << huber;
    }
}

TEST(LeastSquares, HubersFunctionIsASquareNearAndALineFarAway) {
  std::vector<double> x = {0}, y = {0};
  LeastSquares problem{.unknowns = 1,
                       .points = 1,
                       .residual =
                           [](size_t, const Unknowns& u) {
                             return Residual{u[0], {1}};
                           },
                       .huber = 2};
  EXPECT_EQ(objective(problem, {1}), 0.5);
  EXPECT_EQ(objective(problem, {2}), 2);
  EXPECT_EQ(objective(problem, {-5}), 2 * (5 - 1));
}

// An unknown that no point depends on stays where it is.
TEST(LeastSquares, AnUnknownThatNothingTellsOfIsLeft) {
  LeastSquares problem{.unknowns = 2, .points = 2, .residual = [](size_t i, const Unknowns& u) {
                         return Residual{u[0] - double(i), {1, 0}};
                       }};
  LeastSquaresResult found = minimize(problem, {7, 3});
  EXPECT_NEAR(found.at[0], 0.5, 1e-9);
  EXPECT_EQ(found.at[1], 3);
}

}  // namespace
}  // namespace tokamak
