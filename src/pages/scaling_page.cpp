#include "pages/scaling_page.h"

#include "base/error.h"
#include "base/json.h"
#include "pages/chart_library.h"
#include "pages/html.h"
#include "pages/report_page.h"
#include "plan/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

namespace tokamak {
namespace {

using nlohmann::ordered_json;

constexpr int kCurvePoints = 60;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(std::stod(fmt::format("{:.6g}", value))) : ordered_json();
}

/// From `low` to `high`, evenly in the logarithm.
std::vector<double> spread(double low, double high) {
  std::vector<double> values;
  for (int i = 0; i <= kCurvePoints; ++i) values.push_back(low * std::pow(high / low, double(i) / kCurvePoints));
  return values;
}

ordered_json line(const std::vector<double>& x, const std::function<double(double)>& y) {
  ordered_json points = ordered_json::array();
  for (double at : x) points.push_back({{"x", number(at)}, {"y", number(y(at))}});
  return points;
}

/// Lines of a chart: `tone` is a colour's number, of `dash` and `band` lines those between which 95 of 100 draws lie.
struct Chart {
  std::string id, title, x, y, note;
  ordered_json sets = ordered_json::array();

  void add(const std::string& label, int tone, const char* kind, ordered_json points) {
    sets.push_back({{"label", label}, {"tone", tone}, {"kind", kind}, {"points", std::move(points)}});
  }
};

class Page {
 public:
  explicit Page(const ScalingReport& report) : report_(report), points_(report.request.points) {
    for (const ScalingPoint& point : points_) {
      sizes_.push_back(point.at.parameters);
      widen(flops_, point.at.flops());
      widen(tokens_, point.at.tokens);
      widen(parameters_, point.at.parameters);
    }
    std::sort(sizes_.begin(), sizes_.end());
    sizes_.erase(std::unique(sizes_.begin(), sizes_.end(), [](double a, double b) { return b < 1.05 * a; }),
                 sizes_.end());
  }

  std::vector<Chart> charts() {
    std::vector<Chart> list = {over_compute()};
    list.push_back(over("tokens", "Loss and tokens", "tokens", &ModelAndData::tokens, tokens_));
    list.push_back(over("parameters", "Loss and parameters", "parameters", &ModelAndData::parameters, parameters_));
    list.push_back(best_size());
    return list;
  }

 private:
  struct Range {
    double low = INFINITY, high = 0;
  };
  static void widen(Range& range, double value) {
    range.low = std::min(range.low, value), range.high = std::max(range.high, value);
  }

  // The colour of a size; runs whose sizes are alike have one.
  int tone(double size) const {
    auto above = std::upper_bound(sizes_.begin(), sizes_.end(), size);
    return int(above - sizes_.begin()) - 1;
  }

  void add_runs(Chart& chart, const std::function<double(const ModelAndData&)>& x) const {
    for (size_t s = 0; s < sizes_.size(); ++s) {
      ordered_json list = ordered_json::array();
      for (const ScalingPoint& point : points_)
        if (tone(point.at.parameters) == int(s))
          list.push_back({{"x", number(x(point.at))}, {"y", number(point.loss)}, {"name", point.name}});
      chart.add(format_count(sizes_[s]) + " parameters", int(s), "points", list);
    }
  }

  template <class Law>
  void add_band(Chart& chart, const std::vector<double>& x, const std::vector<Law>& draws,
                const std::function<double(const Law&, double)>& y) const {
    if (draws.empty()) return;
    ordered_json low = ordered_json::array(), high = ordered_json::array();
    for (double at : x) {
      std::vector<double> values;
      for (const Law& law : draws) values.push_back(y(law, at));
      Interval range = interval95(std::move(values));
      low.push_back({{"x", number(at)}, {"y", number(range.low)}});
      high.push_back({{"x", number(at)}, {"y", number(range.high)}});
    }
    chart.add("95 of 100 draws, from", 8, "band", low);
    chart.add("95 of 100 draws, to", 8, "band to", high);
  }

  Chart over_compute() const {
    Chart chart{"compute", "Loss and compute", "compute, FLOPs", "loss, nats a token", ""};
    std::vector<double> all = spread(flops_.low, std::max(report_.next.flops, flops_.high));
    add_runs(chart, [](const ModelAndData& at) { return at.flops(); });
    if (report_.law) {
      const ParametricLaw& law = report_.law->law;
      add_band<ParametricLaw>(chart, all, report_.law->draws,
                              [](const ParametricLaw& l, double flops) { return l.loss(l.best(flops)); });
      chart.add("least loss by the law", 8, "line", line(all, [&](double flops) { return law.loss(law.best(flops)); }));
      for (size_t s = 0; s < sizes_.size(); ++s)
        chart.add(format_count(sizes_[s]) + " by the law", int(s), "dash",
                  line(spread(flops_.low, flops_.high), [&](double flops) {
                    return law.loss({sizes_[s], flops / (kFlopsPerParameterToken * sizes_[s])});
                  }));
      chart.note = "Dashed: a size trained for longer and longer, by the law.";
    } else {
      add_band<ComputeCurve>(chart, all, report_.curve->draws,
                             [](const ComputeCurve& c, double at) { return c.loss(at); });
      chart.add("the curve", 8, "line", line(all, [&](double flops) { return report_.curve->law.loss(flops); }));
    }
    return chart;
  }

  // With lines of equal compute by the law, from the least that a run took to the most.
  Chart over(const char* id, const char* title, const char* x, double ModelAndData::*member, const Range& range) const {
    constexpr int kLines = 4;
    Chart chart{id, title, x, "loss, nats a token", ""};
    add_runs(chart, [&](const ModelAndData& at) { return at.*member; });
    if (!report_.law) return chart;
    for (int i = 0; i < kLines; ++i) {
      double flops = flops_.low * std::pow(flops_.high / flops_.low, double(i) / (kLines - 1));
      chart.add(fmt::format("{:.1e} FLOPs", flops), 8, "dash", line(spread(range.low, range.high), [&](double value) {
                  ModelAndData at;
                  at.*member = value;
                  double other = flops / (kFlopsPerParameterToken * value);
                  (member == &ModelAndData::tokens ? at.parameters : at.tokens) = other;
                  return report_.law->law.loss(at);
                }));
    }
    chart.note = "Dashed: equal compute by the law. Where such a line is lowest is the best size for that compute.";
    return chart;
  }

  Chart best_size() const {
    Chart chart{"size", "Best size", "compute, FLOPs", "parameters", ""};
    std::vector<double> all = spread(flops_.low, std::max(report_.next.flops, flops_.high));
    ordered_json runs = ordered_json::array();
    for (const ScalingPoint& point : points_)
      runs.push_back({{"x", number(point.at.flops())}, {"y", number(point.at.parameters)}, {"name", point.name}});
    chart.add("your runs", 0, "points", runs);
    if (report_.law) {
      add_band<ParametricLaw>(chart, all, report_.law->draws,
                              [](const ParametricLaw& l, double flops) { return l.best(flops).parameters; });
      chart.add("the law of your runs", 8, "line",
                line(all, [&](double flops) { return report_.law->law.best(flops).parameters; }));
    }
    int tone = 1;
    for (const PublishedLaw& law : published_laws())
      chart.add(std::string(law.name), tone++, "dash",
                line(all, [&](double flops) { return law.best(flops).parameters; }));
    chart.note = "Dashed: published laws (docs/scaling.md).";
    return chart;
  }

  const ScalingReport& report_;
  const std::vector<ScalingPoint>& points_;
  std::vector<double> sizes_;
  Range flops_, tokens_, parameters_;
};

std::string_view text_of(std::string_view ending) {
  for (std::span<const EmbeddedFile> files : {report_files(), scaling_files()})
    for (const EmbeddedFile& file : files)
      if (std::string_view(file.name).ends_with(ending)) return file.text;
  TOKAMAK_CHECK(false, "no embedded file {}", ending);
}

}  // namespace

std::string scaling_page(const ScalingReport& report) {
  require_charts();
  ordered_json data = ordered_json::array();
  std::string sections;
  for (Chart& chart : Page(report).charts()) {
    sections += fmt::format(
        "<section{}><h2>{}</h2><div class=\"canvas\"><canvas id=\"chart-{}\" role=\"img\" aria-label=\"{}\"></canvas>"
        "</div>\n<p>{}</p></section>\n",
        data.empty() ? " class=\"large\"" : "", chart.title, chart.id, chart.title, chart.note);
    data.push_back({{"id", chart.id}, {"x", chart.x}, {"y", chart.y}, {"sets", std::move(chart.sets)}});
  }
  std::string json = format_json(data);
  for (size_t at = 0; (at = json.find("</", at)) != json.npos; at += 3) json.replace(at, 2, "<\\/");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Tokamak: scaling laws</title>\n"
      "<style>\n{}.canvas {{ height: 340px; }}\npre.table {{ white-space: pre; overflow-x: auto; "
      "}}\n</style>\n</head>\n<body>\n<h1>Scaling laws of {} runs</h1>\n<div class=\"charts\">\n{}</div>\n"
      "<div class=\"part wide\"><h2>Numbers</h2><pre class=\"table\">{}</pre></div>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n"
      "<script>\n{}\n</script>\n<script>\n{}</script>\n</body>\n</html>\n",
      text_of("report.css"), report.request.points.size(), sections, escape_html(format_scaling(report)), json,
      chart_library().front().text, text_of("scaling.js"));
}

}  // namespace tokamak
