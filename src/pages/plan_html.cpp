#include "pages/plan_html.h"

#include "base/bytes.h"
#include "pages/html.h"
#include "pages/page_charts.h"
#include "plan/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace tokamak {
namespace {

// Tables of the plan's text are wider than a phone: they alone are scrolled sideways.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d0d7de; --page: #ffffff; --panel: #f6f8fa;
        --c0: #0969da; --c1: #8250df; --c2: #1a7f37; --c3: #bf8700; --c4: #cf222e; --c5: #8c959f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --page: #0d1117; --panel: #151b23;
          --c0: #4493f8; --c1: #ab7df8; --c2: #3fb950; --c3: #d29922; --c4: #f85149; --c5: #6e7681; }
}
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 1100px;
       margin: 1.5em auto; padding: 0 1em; overflow-wrap: anywhere; }
h1 { font-size: 1.5em; margin-bottom: 0; }
h2 { font-size: 1.2em; margin: 1.5em 0 0; }
p { color: var(--soft); margin: 0.4em 0; }
.best { border-left: 4px solid var(--c0); padding: 0.2em 0 0.2em 1em; margin: 1em 0; }
.best b { color: var(--ink); }
pre { background: var(--panel); padding: 0.8em; border-radius: 6px; font-size: 12px; margin: 0.4em 0; }
pre.command { white-space: normal; font-size: 13px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td { padding: 1px 1.5em 1px 0; vertical-align: top; }
td:last-child { text-align: right; padding-right: 0; white-space: nowrap; }
h3 { font-size: 1em; margin: 1em 0 0.2em; }
pre.table { overflow-x: auto; overflow-wrap: normal; }
)";

struct Row {
  std::string name;
  std::vector<double> parts;
  std::string value;  // of their sum
};

struct Kinds {
  std::string title, unit;
  std::vector<std::string> names;
  double limit = 0;
};

std::string chart(PageCharts& charts, const std::vector<Row>& rows, const Kinds& kinds) {
  BarChart chart{.title = kinds.title, .unit = kinds.unit, .is_stacked = true, .limit = kinds.limit};
  for (size_t i = 0; i < kinds.names.size(); ++i) chart.sets.push_back({kinds.names[i], fmt::format("--c{}", i), {}});
  for (const Row& row : rows) {
    chart.rows.push_back(row.name);
    chart.values.push_back(row.value);
    for (size_t i = 0; i < row.parts.size(); ++i) chart.sets[i].values.push_back(row.parts[i]);
  }
  return charts.add(chart);
}

std::string times(PageCharts& charts, const std::vector<Estimate>& found) {
  std::vector<Row> rows;
  for (const Estimate& one : found) {
    TimeByKind t = one.time;
    std::vector<double> ms = {t.matmul, t.attention, t.memory_bound, t.recomputed, t.communication(), t.bubble};
    for (double& part : ms) part *= 1e3;
    double more = 100 * (t.total() / found[0].time.total() - 1);
    rows.push_back({describe(one.layout), ms,
                    fmt::format("{:.1f} ms{}", t.total() * 1e3, rows.empty() ? "" : fmt::format(", {:+.1f}%", more))});
  }
  return chart(charts, rows,
               {"time of a step",
                "ms",
                {"matrix products", "attention", "memory-bound", "computed again", "exposed communication", "bubble"}});
}

std::string memories(PageCharts& charts, const std::vector<Estimate>& found, double limit) {
  std::vector<Row> rows;
  for (const Estimate& one : found) {
    const MemoryByKind& m = one.memory;
    std::vector<double> gib = {m.weights, m.gradients, m.optimizer, m.activations, m.buffers};
    for (double& part : gib) part /= kGiB;
    rows.push_back({describe(one.layout), gib, fmt::format("{:.1f} GiB", m.total() / kGiB)});
  }
  return chart(charts, rows,
               {"memory of the fullest GPU",
                "GiB",
                {"weights", "gradients", "optimizer", "activations", "buffers"},
                limit / kGiB});
}

// What a reader came for.
std::string recommendation(const TrainingPlan& plan) {
  const PlannedLayout& best = plan.layouts[0];
  TrainingCost cost = cost_of(plan.request, best.step_seconds());
  return fmt::format(
      "<div class=\"best\"><p><b>{}</b></p>\n<p>{:.1f} ms a step, {} tokens/s; {} for {} tokens, {:.0f} kWh, {}.</p>\n"
      "<p>{}.</p></div>\n<pre class=\"command\">{}</pre>\n",
      escape_html(describe(best.estimate.layout)), 1e3 * best.step_seconds(), format_count(cost.tokens_per_second),
      duration_text(cost.seconds), format_count(plan.request.tokens), cost.kilowatt_hours, money_text(cost.dollars),
      escape_html(plan.limit), command_html(train_command(plan, best.estimate.layout)));
}

// The text of the summary without its columns and without the command, which stands above.
std::string said(const TrainingPlan& plan) {
  std::string text, command = train_command(plan, plan.layouts[0].estimate.layout);
  std::istringstream lines(format_summary(plan));
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (size_t gap = line.find("   "); gap != line.npos) line = line.substr(line.find_first_not_of(' ', gap));
    if (!line.empty() && line != command) text += "<p>" + escape_html(line) + "</p>\n";
  }
  return text;
}

std::string changes(std::string_view title, const std::vector<Change>& changes) {
  if (changes.empty()) return "";
  std::string text = fmt::format("<h3>{}</h3>\n<table>\n", title);
  for (const Change& change : changes)
    text += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escape_html(change.what), effect_of(change));
  return text + "</table>\n";
}

std::string advice(const std::vector<Advice>& advice) {
  constexpr double kTold = 5e-4;  // what one decimal shows
  if (advice.empty()) return "";
  std::string text = "<h3>Advice, with the share of a step's time that it would save</h3>\n<ul>\n";
  for (const Advice& one : advice)
    text += fmt::format("<li>{}{}</li>\n", one.gain >= kTold ? fmt::format("{:.1f}%: ", 100 * one.gain) : "",
                        escape_html(one.text));
  return text + "</ul>\n";
}

std::string best_part(const TrainingPlan& plan) {
  return said(plan) + changes("With another cluster and the best of the layouts then", plan.cluster_changes) +
         changes("With the best layout, but", plan.layout_changes) + advice(plan.advice);
}

}  // namespace

std::string plan_html(const TrainingPlan& plan) {
  std::vector<Estimate> found = plan.found;
  found.resize(std::min(found.size(), kMostRows));
  const TrainingRequest& r = plan.request;
  std::string title = fmt::format("{} x {}", r.gpus, escape_html(r.cluster.gpu.name));
  PageCharts charts;
  std::string time = times(charts, found), memory = memories(charts, found, r.cluster.gpu.memory_bytes.value);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Tokamak plan: {0}</title>\n<style>{1}{2}</style>\n</head>\n<body>\n<h1>Layouts on {0}</h1>\n{3}"
      "<h2>Time of a step</h2>\n<p>The fastest micro-batch of each mesh; the fastest {4} of those looked at, composed "
      "of a few compiled blocks. The first is the fastest, and the others say by how much they are slower.</p>\n{5}"
      "<h2>Memory of the fullest GPU</h2>\n<p>The dashed line: what a GPU has.</p>\n{6}"
      "<h2>What is said of the best</h2>\n{7}"
      "<h2>Tables</h2>\n<pre class=\"table\">{8}</pre>\n{9}{10}</body>\n</html>\n",
      title, kStyle, PageCharts::style(), recommendation(plan), found.size(), time, memory, best_part(plan),
      escape_html(format_layouts(plan)), PageCharts::library(), charts.scripts());
}

}  // namespace tokamak
