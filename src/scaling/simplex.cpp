#include "scaling/simplex.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tokamak {
namespace {

struct Corner {
  Unknowns at = {};
  double value = 0;
  bool operator<(const Corner& other) const { return value < other.value; }
};

class Simplex {
 public:
  Simplex(const LeastSquares& problem, const Unknowns& start, double size) : problem_(problem) {
    corners_.push_back(corner(start));
    for (size_t i = 0; i < problem.unknowns; ++i) {
      Unknowns moved = start;
      moved[i] += size;
      corners_.push_back(corner(moved));
    }
  }

  Corner run() {
    constexpr int kMostSteps = 2000;
    for (int step = 0; step < kMostSteps; ++step) {
      std::sort(corners_.begin(), corners_.end());
      if (corners_.back().value - corners_.front().value <= 1e-16 * corners_.front().value) break;
      move_worst();
    }
    return *std::min_element(corners_.begin(), corners_.end());
  }

 private:
  Corner corner(const Unknowns& at) const { return {at, objective(problem_, at)}; }

  // On the line from the worst corner through the middle of the others: 1 mirrors it.
  Corner on_line(const Unknowns& middle, double factor) const {
    Unknowns at = middle;
    for (size_t i = 0; i < problem_.unknowns; ++i) at[i] += factor * (middle[i] - corners_.back().at[i]);
    return corner(at);
  }

  void move_worst() {
    Unknowns middle = {};
    for (size_t c = 0; c + 1 < corners_.size(); ++c)
      for (size_t i = 0; i < problem_.unknowns; ++i) middle[i] += corners_[c].at[i] / double(problem_.unknowns);
    Corner mirrored = on_line(middle, 1);
    if (mirrored < corners_.front()) {
      Corner further = on_line(middle, 2);
      corners_.back() = further < mirrored ? further : mirrored;
    } else if (mirrored < corners_[corners_.size() - 2]) {
      corners_.back() = mirrored;
    } else if (Corner nearer = on_line(middle, mirrored < corners_.back() ? 0.5 : -0.5); nearer < corners_.back()) {
      corners_.back() = nearer;
    } else {
      for (Corner& other : corners_) {
        for (size_t i = 0; i < problem_.unknowns; ++i) other.at[i] = (other.at[i] + corners_.front().at[i]) / 2;
        other.value = objective(problem_, other.at);
      }
    }
  }

  const LeastSquares& problem_;
  std::vector<Corner> corners_;
};

}  // namespace

LeastSquaresResult minimize_by_simplex(const LeastSquares& problem, const Unknowns& start) {
  Corner best{start, objective(problem, start)};
  for (double size : {0.5, 0.1, 0.02, 0.004}) {
    Corner found = Simplex(problem, best.at, size).run();
    if (found < best) best = found;
  }
  return {best.at, best.value, true};
}

}  // namespace tokamak
