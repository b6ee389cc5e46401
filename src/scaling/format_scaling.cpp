#include "base/json.h"
#include "model/model.h"
#include "plan/units.h"
#include "scaling/model_shape.h"
#include "scaling/scaling_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace tokamak {
namespace {

using Json = nlohmann::ordered_json;

std::string run_table(const ScalingReport& report) {
  const std::vector<ScalingPoint>& points = report.request.points;
  size_t width = 4;
  for (const ScalingPoint& point : points) width = std::max(width, point.name.size() + 2);
  std::string text = fmt::format("{:<{}}{:>11}{:>11}{:>8}{:>10}{:>8}{:>9}{:>9}\n", "run", width, "parameters", "tokens",
                                 "ratio", "FLOPs", "loss", "law", "curve");
  auto miss = [](const auto& fitted, size_t i) {
    return fitted ? fmt::format("{:+.2f}%", 100 * fitted->misses[i]) : std::string("-");
  };
  for (size_t i = 0; i < points.size(); ++i) {
    const ModelAndData& at = points[i].at;
    text += fmt::format("{:<{}}{:>11}{:>11}{:>8.1f}{:>10.2e}{:>8.3f}{:>9}{:>9}\n", points[i].name, width,
                        format_count(at.parameters), format_count(at.tokens), at.tokens / at.parameters, at.flops(),
                        points[i].loss, miss(report.law, i), miss(report.curve, i));
  }
  return text +
         "\nloss: nats a token; FLOPs: 6 for each parameter and token; ratio: tokens for each parameter\n"
         "law, curve: by how much the run's loss is above what the law or the curve below says\n";
}

std::string constant(const char* name, double value, const Interval& range, const char* what) {
  return fmt::format("  {:<8}{:>12.4g}   {:<26}{}\n", name, value,
                     fmt::format("{:.4g} to {:.4g}", range.low, range.high), what);
}

std::string law_text(const ScalingReport& report) {
  if (!report.law) return fmt::format("\nno law     {}\n", report.no_law);
  const Fitted<ParametricLaw>& fitted = *report.law;
  auto line = [&](const char* name, auto number, const char* what) {
    std::vector<double> drawn;
    for (const ParametricLaw& law : fitted.draws) drawn.push_back(number(law));
    return constant(name, number(fitted.law), interval95(drawn), what);
  };
  std::string text = fmt::format(
      "\nlaw        L(N, D) = E + A / N^alpha + B / D^beta, of {} runs, which miss it by {:.2f}% (root mean square)\n"
      "  {:<8}{:>12}   {:<26}\n",
      report.request.points.size(), 100 * fitted.error, "", "value", "95 of 100 draws");
  text += line(
      "E", [](const ParametricLaw& l) { return l.E; }, "what no size and no data take away");
  text += line(
      "A", [](const ParametricLaw& l) { return l.A; }, "");
  text += line(
      "alpha", [](const ParametricLaw& l) { return l.alpha; }, "how loss falls with parameters");
  text += line(
      "B", [](const ParametricLaw& l) { return l.B; }, "");
  text += line(
      "beta", [](const ParametricLaw& l) { return l.beta; }, "how loss falls with tokens");
  text += line(
      "a", [](const ParametricLaw& l) { return l.size_exponent(); },
      "the best size goes with compute^a; Chinchilla 0.50, Kaplan 0.73");
  return text;
}

std::string curve_text(const ScalingReport& report) {
  if (!report.curve) return fmt::format("\nno curve   {}\n", report.no_curve);
  const Fitted<ComputeCurve>& fitted = *report.curve;
  std::vector<double> gammas;
  for (const ComputeCurve& curve : fitted.draws) gammas.push_back(curve.gamma);
  Interval range = interval95(gammas);
  return fmt::format(
      "\ncurve      L(C) = {:.4g} + {:.4g} / C^{:.4f} ({:.4f} to {:.4f}); the runs miss it by {:.2f}%\n"
      "           it holds for runs of one ratio of tokens to parameters\n",
      fitted.law.E, fitted.law.K, fitted.law.gamma, range.low, range.high, 100 * fitted.error);
}

std::string next_text(const ScalingReport& report) {
  const NextSize& next = report.next;
  std::string text = fmt::format("\nnext       {:g} times the compute of the largest run: {:.2e} FLOPs\n",
                                 report.request.next, next.flops);
  text += fmt::format("  {:<24}{:<34}{:<34}{:>8}   {}\n", "by", "parameters", "tokens", "ratio", "loss");
  if (report.law)
    text += fmt::format("  {:<24}{:<34}{:<34}{:>8.1f}   {}\n", "the law of your runs", count_text(next.parameters),
                        count_text(next.tokens), next.tokens.value / next.parameters.value, loss_text(next.loss));
  if (report.curve)
    text += fmt::format("  {:<24}{:<34}{:<34}{:>8}   {}\n", "the curve of your runs", "as the runs'", "", "",
                        loss_text(next.curve_loss));
  for (const PublishedLaw& law : published_laws()) {
    ModelAndData best = law.best(next.flops);
    text += fmt::format("  {:<24}{:<34}{:<34}{:>8.1f}   {}\n", law.name, format_count(best.parameters),
                        format_count(best.tokens), best.tokens / best.parameters,
                        law.loss ? fmt::format("{:.3f}", law.loss(next.flops)) : "-");
  }
  if (report.law && report.request.model.vocab > 0) {
    ModelConfig shape = shape_near(report.request.model, next.parameters.value);
    text += fmt::format("  a model of that size: --model.layers={} --model.heads={} --model.width={} ({} parameters)\n",
                        shape.layers, shape.heads, shape.width, format_count(double(count_parameters(shape))));
  }
  return text + "  in brackets: where 95 of 100 draws have it. Published losses are of other data and tokenizers.\n";
}

Json json_of(const Estimated& one) { return {{"value", one.value}, {"low", one.range.low}, {"high", one.range.high}}; }

}  // namespace

std::string count_text(const Estimated& one) {
  return fmt::format("{} ({} to {})", format_count(one.value), format_count(one.range.low),
                     format_count(one.range.high));
}

std::string loss_text(const Estimated& one) {
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", one.value, one.range.low, one.range.high);
}

std::string format_scaling(const ScalingReport& report) {
  std::string text = run_table(report) + law_text(report) + curve_text(report) + next_text(report);
  for (const std::string& note : report.notes)
    text += fmt::format("{}note       {}\n", &note == &report.notes[0] ? "\n" : "", note);
  return text;
}

std::string scaling_json(const ScalingReport& report) {
  Json json = {{"runs", Json::array()}};
  for (const ScalingPoint& point : report.request.points)
    json["runs"].push_back({{"name", point.name},
                            {"parameters", point.at.parameters},
                            {"tokens", point.at.tokens},
                            {"flops", point.at.flops()},
                            {"loss", point.loss}});
  json["law"] = json["curve"] = Json();
  if (report.law) {
    const ParametricLaw& law = report.law->law;
    json["law"] = {{"E", law.E},
                   {"A", law.A},
                   {"alpha", law.alpha},
                   {"B", law.B},
                   {"beta", law.beta},
                   {"size_exponent", law.size_exponent()},
                   {"error", report.law->error}};
  }
  if (report.curve) {
    const ComputeCurve& curve = report.curve->law;
    json["curve"] = {{"E", curve.E}, {"K", curve.K}, {"gamma", curve.gamma}, {"error", report.curve->error}};
  }
  const NextSize& next = report.next;
  json["next"] = {{"flops", next.flops}};
  if (report.law)
    json["next"].update(
        Json{{"parameters", json_of(next.parameters)}, {"tokens", json_of(next.tokens)}, {"loss", json_of(next.loss)}});
  if (report.curve) json["next"]["curve_loss"] = json_of(next.curve_loss);
  json["notes"] = report.notes;
  return format_json(json);
}

}  // namespace tokamak
