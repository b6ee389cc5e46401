// What activation recomputation is worth: how much of a block's activations is left, and how much longer it takes, by
// how many kinds of values are computed again. One layout's curve stands for those of all: it says where to look, not
// what comes out. Tests: tests/advise/recompute_curve_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tokamak {

class RecomputeCurve {
 public:
  struct Point {
    double left = 1, time = 0;  // shares of a block's activations and of its time
  };
  /// By the number of kinds, of none first.
  explicit RecomputeCurve(std::vector<Point> points = {{}}) : points_(std::move(points)) {}

  /// The fewest kinds that leave so much or less; none where all of them leave more.
  std::optional<int64_t> kinds(double left) const;
  /// The share of time that it takes to leave so much, between two numbers of kinds; none as above.
  std::optional<double> time(double left) const;
  /// Whether one kind less leaves hardly more, or even less.
  bool is_flat_before(int64_t kinds) const;

 private:
  std::vector<Point> points_;
};

}  // namespace tokamak
