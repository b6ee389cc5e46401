// Nonlinear least squares of few unknowns, without a library: five unknowns need a 5 x 5 system.
// Tests: tests/scaling/least_squares_test.cpp, against a search without derivatives (scaling/simplex.h).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>

namespace tokamak {

inline constexpr size_t kMostUnknowns = 5;
using Unknowns = std::array<double, kMostUnknowns>;  // of which the first few count

/// What a point misses its law by, and the derivative by each unknown.
struct Residual {
  double value = 0;
  Unknowns gradient = {};
};

struct LeastSquares {
  size_t unknowns = 0, points = 0;
  std::function<Residual(size_t point, const Unknowns&)> residual;
  double huber = 0;  // beyond it a residual counts by its size, not its square: Huber (1964); 0: never
};

/// Sum over points of Huber's function of the residual: r^2 / 2 up to `huber`, then huber (|r| - huber / 2).
double objective(const LeastSquares& problem, const Unknowns& at);

struct LeastSquaresResult {
  Unknowns at = {};
  double objective = 0;
  bool converged = false;
};

/// Levenberg's and Marquardt's method (Marquardt 1963), each point weighted anew in each step as Huber's function asks
/// (iteratively reweighted least squares). Finds the minimum next to `start`.
LeastSquaresResult minimize(const LeastSquares& problem, const Unknowns& start);

}  // namespace tokamak
