#include "advise/recompute_curve.h"

namespace tokamak {

std::optional<int64_t> RecomputeCurve::kinds(double left) const {
  for (size_t k = 0; k < points_.size(); ++k)
    if (points_[k].left <= left) return int64_t(k);
  return {};
}

std::optional<double> RecomputeCurve::time(double left) const {
  if (left >= 1) return 0;
  Point before;
  for (const Point& point : points_) {
    if (point.left <= left) {
      double share = before.left > point.left ? (before.left - left) / (before.left - point.left) : 1;
      return before.time + share * (point.time - before.time);
    }
    if (point.left < before.left) before = point;
  }
  return {};
}

bool RecomputeCurve::is_flat_before(int64_t kinds) const {
  constexpr double kAlike = 1.1;
  auto k = size_t(kinds);
  return k >= points_.size() || k == 0 || points_[k - 1].left < kAlike * points_[k].left;
}

}  // namespace tokamak
