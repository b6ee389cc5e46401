#include "pages/page_charts.h"

#include "base/error.h"
#include "pages/chart_library.h"
#include "pages/html.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace tokamak {
namespace {

using nlohmann::ordered_json;

constexpr size_t kFirstRows = 10;  // that are shown until a reader asks for all

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(std::stod(fmt::format("{:.6g}", value))) : ordered_json();
}

ordered_json json_of(const BarSet& set) {
  ordered_json values = ordered_json::array();
  for (double value : set.values) values.push_back(number(value));
  return {{"label", set.label}, {"colour", set.colour}, {"values", values}};
}

ordered_json json_of(const PointSet& set) {
  ordered_json points = ordered_json::array();
  for (const ChartPoint& p : set.points)
    points.push_back({{"x", number(p.x)}, {"y", number(p.y)}, {"share", number(p.share)}, {"title", p.title}});
  return {{"label", set.label}, {"colour", set.colour}, {"points", points}};
}

ordered_json json_of(const NamedLine& line) {
  ordered_json points = ordered_json::array();
  for (const auto& [x, y] : line.points) points.push_back({{"x", number(x)}, {"y", number(y)}});
  return {{"name", line.name}, {"points", points}};
}

std::string canvas(size_t index, const std::string& title) {
  return fmt::format("<div class=\"canvas\"><canvas id=\"chart-{}\" role=\"img\" aria-label=\"{}\"></canvas></div>\n",
                     index, escape_html(title));
}

// Which rows, and where the axis begins.
std::string bar_controls(size_t index, size_t rows) {
  std::string text = fmt::format("<p class=\"choose\">");
  if (rows > kFirstRows)
    text += fmt::format(
        "<label>show <select data-chart=\"{0}\" data-choice=\"rows\"><option value=\"{1}\">first {1}<option "
        "value=\"{2}\">all {2}</select></label> ",
        index, kFirstRows, rows);
  return text + fmt::format(
                    "<label>axis <select data-chart=\"{}\" data-choice=\"axis\"><option value=\"zero\">from 0<option "
                    "value=\"near\">near the least</select></label></p>\n",
                    index);
}

std::string script_text(const ordered_json& data) {
  std::string text = data.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
  return text;
}

constexpr std::string_view kAbsent =
    "<p>This build has no Chart.js (package libjs-chart.js), which draws charts.</p>\n";

}  // namespace

struct PageCharts::Data {
  ordered_json charts = ordered_json::array();
};

PageCharts::PageCharts() : data_(std::make_unique<Data>()) {}
PageCharts::~PageCharts() = default;

std::string PageCharts::add(const BarChart& chart) {
  if (chart_library().empty()) return std::string(kAbsent);
  for (const BarSet& set : chart.sets) TOKAMAK_CHECK(set.values.size() == chart.rows.size(), "a row without a value");
  ordered_json sets = ordered_json::array();
  for (const BarSet& set : chart.sets) sets.push_back(json_of(set));
  size_t index = data_->charts.size();
  data_->charts.push_back({{"kind", "bars"},
                           {"unit", chart.unit},
                           {"stacked", chart.is_stacked},
                           {"limit", number(chart.limit)},
                           {"rows", chart.rows},
                           {"values", chart.values},
                           {"sets", sets}});
  return bar_controls(index, chart.rows.size()) + canvas(index, chart.title);
}

std::string PageCharts::add(const PointChart& chart) {
  if (chart_library().empty()) return std::string(kAbsent);
  ordered_json sets = ordered_json::array(), lines = ordered_json::array();
  for (const PointSet& set : chart.sets) sets.push_back(json_of(set));
  for (const NamedLine& line : chart.lines) lines.push_back(json_of(line));
  size_t index = data_->charts.size();
  data_->charts.push_back(
      {{"kind", "points"}, {"x", chart.x_unit}, {"y", chart.y_unit}, {"sets", sets}, {"lines", lines}});
  return canvas(index, chart.title);
}

std::string PageCharts::scripts() const {
  if (data_->charts.empty()) return "";
  return fmt::format("<script type=\"application/json\" id=\"charts\">{}</script>\n<script>\n{}</script>\n",
                     script_text(data_->charts), chart_files().front().text);
}

std::string PageCharts::library() {
  return chart_library().empty() ? "" : fmt::format("<script>\n{}\n</script>\n", chart_library().front().text);
}

std::string_view PageCharts::style() {
  return R"(.canvas { position: relative; }
.choose { display: flex; flex-wrap: wrap; gap: 0.3em 1.2em; }
select { font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
         padding: 2px 6px; }
)";
}

}  // namespace tokamak
