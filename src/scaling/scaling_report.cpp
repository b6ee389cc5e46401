#include "scaling/scaling_report.h"

#include "base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace tokamak {
namespace {

template <class Law>
Estimated estimated(const Fitted<Law>& fitted, const std::function<double(const Law&)>& number) {
  std::vector<double> drawn;
  for (const Law& law : fitted.draws) drawn.push_back(number(law));
  Estimated result{number(fitted.law)};
  result.range = drawn.empty() ? Interval{result.value, result.value} : interval95(drawn);
  return result;
}

NextSize next_size(const ScalingReport& report) {
  double most = 0;
  for (const ScalingPoint& point : report.request.points) most = std::max(most, point.at.flops());
  NextSize next{.flops = most * report.request.next, .parameters = {}, .tokens = {}, .loss = {}, .curve_loss = {}};
  if (report.law) {
    double flops = next.flops;
    next.parameters = estimated<ParametricLaw>(*report.law, [&](const auto& l) { return l.best(flops).parameters; });
    next.tokens = estimated<ParametricLaw>(*report.law, [&](const auto& l) { return l.best(flops).tokens; });
    next.loss = estimated<ParametricLaw>(*report.law, [&](const auto& l) { return l.loss(l.best(flops)); });
  }
  if (report.curve)
    next.curve_loss = estimated<ComputeCurve>(*report.curve, [&](const auto& c) { return c.loss(next.flops); });
  return next;
}

// How far tokens for each parameter differ.
double spread_of_ratios(const std::vector<ScalingPoint>& points) {
  double low = INFINITY, high = 0;
  for (const ScalingPoint& point : points) {
    double ratio = point.at.tokens / point.at.parameters;
    low = std::min(low, ratio), high = std::max(high, ratio);
  }
  return high / low;
}

void add_notes(ScalingReport& report) {
  constexpr double kLeastPublished = 1e18;  // FLOPs: Hoffmann et al. began with 6e18
  if (!report.law && spread_of_ratios(report.request.points) > 2)
    report.notes.emplace_back(
        "the runs' tokens for each parameter differ, which the curve knows nothing of: it is not to be trusted");
  if (report.next.flops < kLeastPublished)
    report.notes.emplace_back(
        "published laws are of runs of 1e18 FLOPs and more: here they say little of size, and "
        "nothing of loss");
  constexpr double kWide = 4, kFar = 100;
  const Interval& size = report.next.parameters.range;
  if (report.law && size.high > kWide * size.low)
    report.notes.push_back(
        "the size is hardly known: runs of sizes and of lengths that differ more would tell it, four times from one to "
        "the next");
  if (report.request.next > kFar)
    report.notes.push_back(fmt::format(
        "{:g} times the compute of the largest run is far away: Hoffmann et al. saw their own frontier bend over less",
        report.request.next));
}

}  // namespace

ScalingReport make_scaling_report(ScalingRequest request, std::vector<std::string> notes) {
  ScalingReport report{.request = std::move(request)};
  report.notes = std::move(notes);
  report.law = fit_law(report.request.points, report.request.fit, report.no_law);
  report.curve = fit_curve(report.request.points, report.request.fit, report.no_curve);
  if (!report.law && !report.curve)
    user_error("[scaling] expected enough runs for a law, got {}; {}; train more of them", report.request.points.size(),
               report.no_curve);
  report.next = next_size(report);
  add_notes(report);
  return report;
}

}  // namespace tokamak
