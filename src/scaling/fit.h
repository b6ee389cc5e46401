// Scaling laws of a user's own runs: fitted to the losses that they ended with, with how sure that is.
// Units: losses in nats a token, compute in FLOPs, 6 for each parameter and token. Tests: tests/scaling/fit_test.cpp.
#pragma once

#include "scaling/published_laws.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tokamak {

/// A training that has ended.
struct ScalingPoint {
  std::string name;
  ModelAndData at;
  double loss = 0;
};

struct FitOptions {
  double huber = 0.01;  // of the loss's logarithm: beyond that a run counts by its distance, not its square
  int64_t draws = 1000;
  int64_t seed = 1;
};

/// The law of all points, or of runs that are all about as long for their size, L(C) = E + K / C^gamma. How many
/// points they need, and how many different ones of a size or a length.
inline constexpr size_t kPointsForLaw = 8, kPointsForCurve = 5, kDifferentPoints = 3;

struct ComputeCurve {
  double E = 0, K = 0, gamma = 0;
  double loss(double flops) const;
};

template <class Law>
struct Fitted {
  Law law = {};
  double error = 0;                 // root of the mean square of what the points miss it by, as a share of the loss
  std::vector<double> misses = {};  // of each point: loss / law's loss - 1
  std::vector<Law> draws = {};      // the same law of points that are drawn anew
};

/// Hoffmann's form, equation 3: Huber's function of log L, from many places to start. The draws are of the bootstrap:
/// the law's own losses, each with what one of the points misses it by, drawn with replacement and made larger by the
/// root of points / (points - 5), as five constants bring the law nearer to its points than to others (Efron and
/// Tibshirani 1993, chapter 9). Nothing where there are too few points, sizes or lengths: `why` then says which.
std::optional<Fitted<ParametricLaw>> fit_law(std::span<const ScalingPoint> points, const FitOptions& options,
                                             std::string& why);

/// The same of loss against compute alone.
std::optional<Fitted<ComputeCurve>> fit_curve(std::span<const ScalingPoint> points, const FitOptions& options,
                                              std::string& why);

/// In which 95 of 100 draws lie.
struct Interval {
  double low = 0, high = 0;
};
Interval interval95(std::vector<double> values);

}  // namespace tokamak
