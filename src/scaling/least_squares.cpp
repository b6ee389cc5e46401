#include "scaling/least_squares.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tokamak {
namespace {

using Matrix = std::array<Unknowns, kMostUnknowns>;

// The normal equations: J^T W J and -J^T W r.
struct Normal {
  Matrix matrix = {};
  Unknowns right = {};
};

Normal normal_equations(const LeastSquares& problem, const Unknowns& at) {
  Normal normal;
  for (size_t point = 0; point < problem.points; ++point) {
    Residual r = problem.residual(point, at);
    double size = std::abs(r.value);
    double weight = problem.huber > 0 && size > problem.huber ? problem.huber / size : 1;
    for (size_t i = 0; i < problem.unknowns; ++i) {
      normal.right[i] -= weight * r.gradient[i] * r.value;
      for (size_t j = 0; j < problem.unknowns; ++j) normal.matrix[i][j] += weight * r.gradient[i] * r.gradient[j];
    }
  }
  return normal;
}

// Gauss's elimination with the largest pivot of a column; false: the system says nothing of some unknown.
bool solve(Normal& system, size_t n) {
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row)
      if (std::abs(system.matrix[row][column]) > std::abs(system.matrix[pivot][column])) pivot = row;
    if (!(std::abs(system.matrix[pivot][column]) > 0)) return false;
    std::swap(system.matrix[column], system.matrix[pivot]);
    std::swap(system.right[column], system.right[pivot]);
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      double factor = system.matrix[row][column] / system.matrix[column][column];
      for (size_t j = column; j < n; ++j) system.matrix[row][j] -= factor * system.matrix[column][j];
      system.right[row] -= factor * system.right[column];
    }
  }
  for (size_t i = 0; i < n; ++i) system.right[i] /= system.matrix[i][i];
  return true;
}

}  // namespace

double objective(const LeastSquares& problem, const Unknowns& at) {
  double sum = 0;
  for (size_t point = 0; point < problem.points; ++point) {
    double size = std::abs(problem.residual(point, at).value);
    bool is_far = problem.huber > 0 && size > problem.huber;
    sum += is_far ? problem.huber * (size - problem.huber / 2) : size * size / 2;
  }
  return sum;
}

LeastSquaresResult minimize(const LeastSquares& problem, const Unknowns& start) {
  constexpr int kMostSteps = 300;
  constexpr double kLeastDamping = 1e-12, kMostDamping = 1e12, kAlike = 1e-12;
  LeastSquaresResult best{start, objective(problem, start)};
  double damping = 1e-3;
  for (int step = 0; step < kMostSteps && damping < kMostDamping; ++step) {
    Normal system = normal_equations(problem, best.at);
    for (size_t i = 0; i < problem.unknowns; ++i)
      system.matrix[i][i] += damping * (system.matrix[i][i] + kLeastDamping);
    Unknowns next = best.at;
    if (solve(system, problem.unknowns))
      for (size_t i = 0; i < problem.unknowns; ++i) next[i] += system.right[i];
    double value = objective(problem, next);
    if (!(value < best.objective)) {  // also where it is no number
      damping *= 4;
      continue;
    }
    best.converged = best.objective - value <= kAlike * best.objective;
    best.at = next, best.objective = value;
    if (best.converged) return best;
    damping = std::max(damping / 8, kLeastDamping);
  }
  best.converged = damping >= kMostDamping;  // no step in any direction helps
  return best;
}

}  // namespace tokamak
