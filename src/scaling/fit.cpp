#include "scaling/fit.h"

#include "base/random.h"
#include "scaling/least_squares.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace tokamak {
namespace {

using Logs = std::vector<double>;

double mean(const Logs& values) { return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size()); }

// log(e^a + e^b + ...), and what share each has of the sum.
struct LogSum {
  double value = 0;
  Unknowns shares = {};
};
LogSum log_sum(std::span<const double> terms) {
  double most = *std::max_element(terms.begin(), terms.end()), sum = 0;
  LogSum result;
  for (size_t i = 0; i < terms.size(); ++i) sum += result.shares[i] = std::exp(terms[i] - most);
  for (size_t i = 0; i < terms.size(); ++i) result.shares[i] /= sum;
  result.value = most + std::log(sum);
  return result;
}

// Unknowns: log of A, B and E, where sizes and tokens are counted in their geometric means, and log of alpha and beta,
// which so stay above 0.
class LawProblem {
 public:
  using Law = ParametricLaw;
  static constexpr size_t kUnknowns = 5;

  explicit LawProblem(std::span<const ScalingPoint> points) {
    for (const ScalingPoint& point : points) {
      sizes_.push_back(std::log(point.at.parameters));
      tokens_.push_back(std::log(point.at.tokens));
    }
    mean_size_ = mean(sizes_), mean_tokens_ = mean(tokens_);
  }

  Residual residual(size_t i, const Unknowns& u, const Logs& losses) const {
    double size = sizes_[i] - mean_size_, tokens = tokens_[i] - mean_tokens_;
    double alpha = std::exp(u[3]), beta = std::exp(u[4]);
    LogSum sum = log_sum(std::array{u[0] - alpha * size, u[1] - beta * tokens, u[2]});
    return {
        sum.value - losses[i],
        {sum.shares[0], sum.shares[1], sum.shares[2], -sum.shares[0] * alpha * size, -sum.shares[1] * beta * tokens}};
  }

  // What is left above E in equal parts, where E is such a part of the least loss.
  std::vector<Unknowns> starts(const Logs& losses) const {
    std::vector<Unknowns> list;
    double least = *std::min_element(losses.begin(), losses.end()), usual = std::exp(mean(losses));
    for (double part : {0.3, 0.6, 0.9})
      for (double alpha : {0.1, 0.3, 0.6, 1.2})
        for (double beta : {0.1, 0.3, 0.6, 1.2}) {
          double e = part * std::exp(least), half = std::log((usual - e) / 2);
          list.push_back({half, half, std::log(e), std::log(alpha), std::log(beta)});
        }
    return list;
  }

  ParametricLaw law(const Unknowns& u) const {
    double alpha = std::exp(u[3]), beta = std::exp(u[4]);
    return {std::exp(u[2]), std::exp(u[0] + alpha * mean_size_), std::exp(u[1] + beta * mean_tokens_), alpha, beta};
  }

 private:
  Logs sizes_, tokens_;
  double mean_size_ = 0, mean_tokens_ = 0;
};

// Unknowns: log of K, E and gamma in the same way.
class CurveProblem {
 public:
  using Law = ComputeCurve;
  static constexpr size_t kUnknowns = 3;

  explicit CurveProblem(std::span<const ScalingPoint> points) {
    for (const ScalingPoint& point : points) flops_.push_back(std::log(point.at.flops()));
    mean_flops_ = mean(flops_);
  }

  Residual residual(size_t i, const Unknowns& u, const Logs& losses) const {
    double flops = flops_[i] - mean_flops_, gamma = std::exp(u[2]);
    LogSum sum = log_sum(std::array{u[0] - gamma * flops, u[1]});
    return {sum.value - losses[i], {sum.shares[0], sum.shares[1], -sum.shares[0] * gamma * flops}};
  }

  std::vector<Unknowns> starts(const Logs& losses) const {
    std::vector<Unknowns> list;
    double least = *std::min_element(losses.begin(), losses.end()), usual = std::exp(mean(losses));
    for (double part : {0.1, 0.3, 0.6, 0.9})
      for (double gamma : {0.05, 0.15, 0.4, 1.0}) {
        double e = part * std::exp(least);
        list.push_back({std::log(usual - e), std::log(e), std::log(gamma)});
      }
    return list;
  }

  ComputeCurve law(const Unknowns& u) const {
    double gamma = std::exp(u[2]);
    return {std::exp(u[1]), std::exp(u[0] + gamma * mean_flops_), gamma};
  }

 private:
  Logs flops_;
  double mean_flops_ = 0;
};

template <class Problem>
LeastSquares least_squares(const Problem& problem, const Logs& losses, double huber) {
  return {.unknowns = Problem::kUnknowns,
          .points = losses.size(),
          .residual = [&problem, &losses](size_t i, const Unknowns& u) { return problem.residual(i, u, losses); },
          .huber = huber};
}

template <class Problem>
Unknowns best_of(const Problem& problem, const Logs& losses, double huber, const std::vector<Unknowns>& starts) {
  LeastSquares squares = least_squares(problem, losses, huber);
  LeastSquaresResult best = minimize(squares, starts.front());
  for (const Unknowns& start : starts)
    if (LeastSquaresResult found = minimize(squares, start); found.objective < best.objective) best = found;
  return best.at;
}

template <class Problem>
Fitted<typename Problem::Law> fit(std::span<const ScalingPoint> points, const FitOptions& options) {
  Problem problem(points);
  Logs losses;
  for (const ScalingPoint& point : points) losses.push_back(std::log(point.loss));
  Unknowns best = best_of(problem, losses, options.huber, problem.starts(losses));
  Fitted<typename Problem::Law> fitted{.law = problem.law(best)};
  Logs told, misses;
  for (size_t i = 0; i < points.size(); ++i) {
    double miss = -problem.residual(i, best, losses).value;
    misses.push_back(miss);
    told.push_back(losses[i] - miss);
    fitted.misses.push_back(std::expm1(miss));
    fitted.error += miss * miss / double(points.size());
  }
  fitted.error = std::sqrt(fitted.error);
  double wider = std::sqrt(double(points.size()) / double(points.size() - Problem::kUnknowns));
  for (int64_t draw = 0; draw < options.draws; ++draw) {
    Logs drawn = told;
    for (size_t i = 0; i < points.size(); ++i) {
      float random = uniform_element(uint64_t(options.seed), int64_t(i), uint64_t(draw));
      drawn[i] += wider * misses[std::min(size_t(double(random) * double(points.size())), points.size() - 1)];
    }
    fitted.draws.push_back(problem.law(best_of(problem, drawn, options.huber, {best})));
  }
  return fitted;
}

// Values that differ by less than a twentieth are one.
size_t count_different(std::span<const ScalingPoint> points, double ModelAndData::*member) {
  constexpr double kAlike = 1.05;
  std::vector<double> values;
  for (const ScalingPoint& point : points) values.push_back(point.at.*member);
  std::sort(values.begin(), values.end());
  size_t count = 0;
  double last = 0;
  for (double value : values)
    if (value > kAlike * last) ++count, last = value;
  return count;
}

}  // namespace

double ComputeCurve::loss(double flops) const { return E + K * std::pow(flops, -gamma); }

std::optional<Fitted<ParametricLaw>> fit_law(std::span<const ScalingPoint> points, const FitOptions& options,
                                             std::string& why) {
  size_t sizes = count_different(points, &ModelAndData::parameters);
  size_t lengths = count_different(points, &ModelAndData::tokens);
  if (points.size() < kPointsForLaw || sizes < kDifferentPoints || lengths < kDifferentPoints) {
    why = fmt::format(
        "a law of parameters and tokens has five constants: it takes {} runs of {} sizes and {} lengths at least, and "
        "these are {} of {} and {}",
        kPointsForLaw, kDifferentPoints, kDifferentPoints, points.size(), sizes, lengths);
    return {};
  }
  return fit<LawProblem>(points, options);
}

std::optional<Fitted<ComputeCurve>> fit_curve(std::span<const ScalingPoint> points, const FitOptions& options,
                                              std::string& why) {
  std::set<double> different;
  for (const ScalingPoint& point : points) different.insert(point.at.flops());
  if (points.size() < kPointsForCurve || different.size() < kDifferentPoints) {
    why = fmt::format(
        "a curve of compute has three constants: it takes {} runs of {} amounts of compute at least, and these are {} "
        "of {}",
        kPointsForCurve, kDifferentPoints, points.size(), different.size());
    return {};
  }
  return fit<CurveProblem>(points, options);
}

Interval interval95(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return {std::nan(""), std::nan("")};
  std::sort(values.begin(), values.end());
  auto at = [&](double share) { return values[size_t(std::round(share * double(values.size() - 1)))]; };
  return {at(0.025), at(0.975)};
}

}  // namespace tokamak
