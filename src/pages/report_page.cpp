#include "pages/report_page.h"

#include "base/error.h"
#include "base/json.h"
#include "pages/chart_library.h"
#include "pages/html.h"
#include "pages/ladder_part.h"
#include "run/progress.h"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tokamak {
namespace {

using nlohmann::ordered_json;

struct ReportChart {
  std::string id, title, unit;
  std::vector<std::string> training, evaluations;
  bool smooth = false, logarithm = false, large = false;
  bool less_is_better = false;  // of the best value; else the largest is told
};

const HistorySeries* find(const HistoryPoints& points, const std::string& name) {
  auto at = std::ranges::find(points.series, name, &HistorySeries::name);
  return at == points.series.end() ? nullptr : &*at;
}

bool has_values(const HistoryPoints& points, const std::string& name) {
  const HistorySeries* series = find(points, name);
  return series && std::ranges::any_of(series->values, [](double value) { return std::isfinite(value); });
}

// What no reader looks for in a chart: another form of the accuracy, and sizes.
bool is_shown(const std::string& name) {
  return name != "validation" && !name.ends_with(" tokens") && !name.ends_with(" bytes") &&
         (!name.ends_with("centred") || name == "mean centred") && !name.ends_with("centred_bytes") &&
         !name.ends_with("centred_tokens");
}

std::vector<ReportChart> charts_of(std::span<const RunHistory> runs) {
  std::vector<ReportChart> charts = {
      {"loss", "Loss", "nats a token", {"loss"}, {"validation"}, true, true, true, true},
      {"rate", "Learning rate", "learning rate", {"learning_rate"}},
      {"norm", "Gradient norm", "norm before clipping", {"gradient_norm"}, {}, true, true, false, true},
      {"speed", "Speed", "tokens a second", {"tokens_per_second"}, {}, true},
      {"mfu", "Model FLOPs utilisation", "% of the peak", {"mfu"}, {}, true},
      {"ms", "Time of a step", "ms", {"step_ms"}, {}, true, true, false, true},
      {"wait", "Waiting for data", "% of the step", {"data_wait"}, {}, true, false, false, true},
      {"memory", "Memory", "MiB", {"memory"}},
      {"scale", "Loss scale", "factor", {"loss_scale"}, {}, false, true}};
  std::set<std::string> told;
  for (const RunHistory& run : runs)
    for (const HistorySeries& series : run.evaluations.series)
      if (is_shown(series.name)) told.insert(series.name);
  for (const std::string& name : told) {
    bool less = name.ends_with("loss") || name.ends_with("perplexity") || name.ends_with("bits_per_byte");
    charts.push_back({fmt::format("task{}", charts.size()), name, "", {}, {name}, false, less, false, less});
  }
  std::erase_if(charts, [&](const ReportChart& chart) {
    return std::ranges::none_of(runs, [&](const RunHistory& run) {
      auto in = [&](const HistoryPoints& points, const std::vector<std::string>& names) {
        return std::ranges::any_of(names, [&](const std::string& name) { return has_values(points, name); });
      };
      return in(run.training, chart.training) || in(run.evaluations, chart.evaluations);
    });
  });
  return charts;
}

ordered_json rounded(const std::vector<double>& values) {
  ordered_json list = ordered_json::array();
  for (double value : values)
    list.push_back(std::isfinite(value) ? ordered_json(std::stod(fmt::format("{:.6g}", value))) : ordered_json());
  return list;
}

ordered_json json_of(const HistoryPoints& points) {
  ordered_json object = {{"step", rounded(points.step)},
                         {"tokens", rounded(points.tokens)},
                         {"hours", rounded(points.hours)},
                         {"series", ordered_json::object()}};
  for (const HistorySeries& series : points.series) object["series"][series.name] = rounded(series.values);
  return object;
}

std::string data_of(std::span<const RunHistory> runs, const std::vector<ReportChart>& charts) {
  ordered_json data = {{"runs", ordered_json::array()}, {"charts", ordered_json::array()}};
  for (const RunHistory& run : runs)
    data["runs"].push_back(
        {{"name", run.name}, {"training", json_of(run.training)}, {"evaluations", json_of(run.evaluations)}});
  for (const ReportChart& c : charts)
    data["charts"].push_back({{"id", c.id}, {"unit", c.unit}, {"smooth", c.smooth}, {"logarithm", c.logarithm}});
  for (size_t i = 0; i < charts.size(); ++i) {
    if (!charts[i].training.empty()) data["charts"][i]["training"] = charts[i].training;
    if (!charts[i].evaluations.empty()) data["charts"][i]["evaluations"] = charts[i].evaluations;
  }
  std::string text = data.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
  return text;
}

std::string format_value(double value) {
  double size = std::fabs(value);
  if (size >= 1e5) return fmt::format("{:.0f}", value);
  return size > 0 && size < 1e-2 ? fmt::format("{:.3e}", value) : fmt::format("{:.5g}", value);
}

std::string swatch(size_t run) { return fmt::format("<i style=\"background: var(--run{})\"></i>", run % 8); }

/// Last and best of a series of a run; nothing where it has no values.
std::string value_row(const RunHistory& run, size_t index, const HistoryPoints& points, const std::string& name,
                      const ReportChart& chart) {
  const HistorySeries* series = find(points, name);
  if (!series || !has_values(points, name)) return "";
  size_t last = 0, best = 0;
  bool any = false;
  for (size_t i = 0; i < series->values.size(); ++i) {
    double value = series->values[i];
    if (!std::isfinite(value)) continue;
    last = i;
    if (!any || (chart.less_is_better ? value < series->values[best] : value > series->values[best])) best = i;
    any = true;
  }
  std::string what = name == "validation" ? ", validation" : "";
  return fmt::format("<tr><td>{}{}{}</td><td>{}</td><td>{} <small>at {:.0f}</small></td></tr>\n", swatch(index),
                     escape_html(run.name), what, format_value(series->values[last]),
                     format_value(series->values[best]), points.step[best]);
}

std::string chart_part(std::span<const RunHistory> runs, const ReportChart& chart) {
  std::string text = fmt::format(
      "<section{}><h2>{}</h2><div class=\"canvas\"><canvas id=\"chart-{}\" role=\"img\" aria-label=\"{}\"></canvas>"
      "</div>\n<table><tr><th>run</th><th>last</th><th>{}</th></tr>\n",
      chart.large ? " class=\"large\"" : "", escape_html(chart.title), chart.id, escape_html(chart.title),
      chart.less_is_better ? "least, and its step" : "most, and its step");
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& name : chart.training) text += value_row(runs[i], i, runs[i].training, name, chart);
    for (const std::string& name : chart.evaluations) text += value_row(runs[i], i, runs[i].evaluations, name, chart);
  }
  text += "</table>";
  if (!chart.training.empty() && !chart.evaluations.empty())
    text += "<small>dashed: validation; faint: single steps</small>";
  return text + "</section>\n";
}

std::string heading(std::span<const RunHistory> runs, const ReportOptions& options) {
  std::string text = "<h1>Training runs</h1>\n<p>" + escape_html(options.date);
  if (options.reload > 0) text += fmt::format("; this page is read again every {} s", options.reload);
  text += "</p>\n<ul class=\"runs\">\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    const HistoryPoints& points = runs[i].training;
    text += fmt::format("<li>{}<b>{}</b>: {} steps", swatch(i), escape_html(runs[i].name), runs[i].steps);
    if (!points.step.empty())
      text += fmt::format(", {} tokens, {} of training", format_count(points.tokens.back()),
                          format_duration(3600 * points.hours.back()));
    if (!runs[i].goodput.empty()) text += ", " + runs[i].goodput;
    text += runs[i].is_training ? "; it trains now</li>\n" : "</li>\n";
  }
  return text + "</ul>\n";
}

constexpr const char* kControls = R"(<div class="controls">
<label>along <select id="x"><option value="step">steps<option value="tokens">tokens<option value="hours">time</select></label>
<label>smoothing <select id="smooth"><option value="0">none<option value="0.9" selected>little<option value="0.98">much</select></label>
<label>show <select id="part"><option value="1">all<option value="0.5">last half<option value="0.2">last fifth<option value="0.05">last twentieth</select></label>
<label>scale <select id="scale"><option value="linear">linear<option value="log">logarithmic</select></label>
</div>
)";

std::string kind_name(RunEvent::Kind kind) {
  switch (kind) {
    case RunEvent::Kind::kStart: return "start";
    case RunEvent::Kind::kSave: return "saved";
    case RunEvent::Kind::kEnd: return "end";
    case RunEvent::Kind::kStop: return "stopped";
    case RunEvent::Kind::kFailure: return "failed";
    case RunEvent::Kind::kRestart: return "starts again";
    case RunEvent::Kind::kFallback: return "bf16 instead of fp8";
  }
  return "";
}

std::string detail(const RunEvent& event) {
  std::string text = event.cause;
  if (event.kind == RunEvent::Kind::kSave)
    text = fmt::format("{}, {:.1f} MB in {:.2f} s", event.checkpoint, double(event.bytes) * 1e-6, event.seconds);
  for (size_t i = 0; i < std::min<size_t>(event.ranks.size(), 4); ++i)
    text += fmt::format("{}{} on {}", text.empty() ? "" : "; ", event.ranks[i].device, event.ranks[i].host);
  if (event.ranks.size() > 4) text += fmt::format(" and {} ranks more", event.ranks.size() - 4);
  return text;
}

std::string events_part(std::span<const RunHistory> runs) {
  std::string text = "<div class=\"part\"><h2>Events</h2>\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    text += fmt::format(
        "<details{}><summary>{}: {}</summary><div class=\"wide\"><table><tr><th>time (UTC)</th>"
        "<th>step</th><th class=\"text\">event</th><th class=\"text\"></th></tr>\n",
        runs.size() == 1 ? " open" : "", escape_html(runs[i].name), runs[i].events.size());
    for (const RunEvent& event : runs[i].events)
      text += fmt::format(
          "<tr><td>{:%Y-%m-%d %H:%M:%S}</td><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}"
          "</td></tr>\n",
          fmt::gmtime(time_t(event.time)), event.step, kind_name(event.kind), escape_html(detail(event)));
    text += "</table></div></details>\n";
  }
  return text + "</div>\n";
}

std::string samples_part(std::span<const RunHistory> runs) {
  constexpr size_t kMost = 50;  // the newest of each
  std::string text;
  for (const RunHistory& run : runs) {
    if (run.samples.empty()) continue;
    text += fmt::format("<details{}><summary>{}: {}</summary>\n", text.empty() ? " open" : "", escape_html(run.name),
                        run.samples.size());
    for (size_t i = 0; i < std::min(kMost, run.samples.size()); ++i) {
      const HistorySample& sample = run.samples[run.samples.size() - 1 - i];
      text += fmt::format("<small>after step {}</small><pre>{}</pre>\n", sample.step, escape_html(sample.text));
    }
    text += "</details>\n";
  }
  return text.empty() ? "" : "<div class=\"part\"><h2>Samples</h2>\n" + text + "</div>\n";
}

std::string config_part(std::span<const RunHistory> runs) {
  std::vector<std::string> keys;
  std::map<std::string, std::vector<std::string>> values;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const auto& [key, value] : runs[i].config) {
      auto [at, is_new] = values.try_emplace(key, runs.size(), "-");
      if (is_new) keys.push_back(key);
      at->second[i] = value;
    }
  std::string head = "<div class=\"wide\"><table><tr><th>key</th>", differing, all;
  for (size_t i = 0; i < runs.size(); ++i)
    head += fmt::format("<th class=\"text\">{}{}</th>", swatch(i), escape_html(runs[i].name));
  head += "</tr>\n";
  for (const std::string& key : keys) {
    const std::vector<std::string>& row = values[key];
    std::string text = "<tr><td>" + escape_html(key) + "</td>";
    for (const std::string& value : row) text += "<td class=\"text\">" + escape_html(value) + "</td>";
    text += "</tr>\n";
    all += text;
    if (std::ranges::any_of(row, [&](const std::string& value) { return value != row[0]; })) differing += text;
  }
  std::string page = "<div class=\"part\"><h2>Configuration</h2>\n";
  if (runs.size() > 1)
    page += differing.empty() ? "<p>The runs have the same configuration.</p>\n"
                              : "<p>What differs:</p>\n" + head + differing + "</table></div>\n";
  return page + "<details><summary>all keys</summary>" + head + all + "</table></div></details></div>\n";
}

std::string_view text_of(std::span<const EmbeddedFile> files, std::string_view ending) {
  auto at =
      std::ranges::find_if(files, [&](const EmbeddedFile& f) { return std::string_view(f.name).ends_with(ending); });
  TOKAMAK_CHECK(at != files.end(), "no embedded file {}", ending);
  return at->text;
}

}  // namespace

void require_charts() {
  if (chart_library().empty())
    user_error(
        "[report] expected a build with Chart.js, which draws the charts, got one without; install the package "
        "libjs-chart.js (tools/setup.sh build) and build again");
}

std::string report_page(std::span<const RunHistory> runs, const ReportOptions& options) {
  require_charts();
  std::vector<ReportChart> charts = charts_of(runs);
  std::string refresh =
      options.reload > 0 ? fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", options.reload) : "";
  std::string body = heading(runs, options) + kControls + "<div class=\"charts\">\n";
  for (const ReportChart& chart : charts) body += chart_part(runs, chart);
  PageCharts ladders;
  body += "</div>\n" + samples_part(runs);
  for (const std::filesystem::path& file : options.ladders) body += ladder_part(file, ladders);
  body += events_part(runs) + config_part(runs);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{}<title>Tokamak: training "
      "runs</title>\n"
      "<style>\n{}</style>\n</head>\n<body>\n{}<script type=\"application/json\" id=\"data\">{}</script>\n"
      "{}<script>\n{}</script>\n{}</body>\n</html>\n",
      refresh, text_of(report_files(), "report.css"), body, data_of(runs, charts), PageCharts::library(),
      text_of(report_files(), "report.js"), ladders.scripts());
}

}  // namespace tokamak
