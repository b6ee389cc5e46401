#include "pages/profile_page.h"

#include "model/model.h"
#include "pages/html.h"
#include "pages/profile_charts.h"
#include "pages/ticks.h"
#include "pages/timeline_chart.h"
#include "plan/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --page: #ffffff; --panel: #eef1f4; --line: #d5dae0;
        --matmul: #2f6db5; --attention: #1b998b; --normalisation: #d4790a; --element-wise: #8250df;
        --optimizer: #6e7781; --communication: #d1242f; --copies: #bf3989; --data-wait: #9a6700;
        --launch-gaps: #b6bec8; --idle: #d5dae0; --block: #9ec1e8; --peak: #2f6db5; --predicted: #c3cbd4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --page: #0d1117; --panel: #1c232c; --line: #30373f;
          --matmul: #5b9be6; --attention: #3fc1b0; --normalisation: #e3a04a; --element-wise: #a583f0;
          --optimizer: #8b949e; --communication: #ff6a69; --copies: #db61a2; --data-wait: #d4a72c;
          --launch-gaps: #57606a; --idle: #353c45; --block: #2c4a6e; --peak: #5b9be6; --predicted: #4a525c; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 1100px;
       margin: 2em auto; padding: 0 1em; overflow-wrap: anywhere; }
h1 { font-size: 1.5em; margin-bottom: 0; }
h2 { font-size: 1.15em; margin: 1.8em 0 0.2em; }
p { color: var(--soft); margin: 0.4em 0; }
small { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: 2px 12px 2px 0; text-align: right; white-space: nowrap; font-weight: normal; }
th { color: var(--soft); border-bottom: 1px solid var(--line); }
td:first-child, th:first-child, td.text, th.text { text-align: left; }
tr.total td { border-top: 1px solid var(--line); }
td i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
.breakdown { display: flex; height: 34px; margin: 0.6em 0; border-radius: 4px; overflow: hidden; gap: 1px; }
.breakdown i { display: block; min-width: 1px; }
svg { display: block; width: 100%; margin-top: 6px; }
.memory { display: grid; grid-template-columns: 3.2em 1fr; margin: 0.8em 0; font-size: 11px; color: var(--soft); }
.memory svg { height: 320px; margin: 0; }
.levels { position: relative; }
.levels span { position: absolute; right: 6px; transform: translateY(50%); }
.now { stroke: var(--communication); stroke-width: 1; vector-effect: non-scaling-stroke; }
.lane { fill: var(--panel); }
.block { fill: var(--block); stroke: var(--page); stroke-width: 0.5; vector-effect: non-scaling-stroke; }
.peak { fill: var(--peak); }
.time { font-size: 12px; color: var(--soft); margin-top: 8px; font-variant-numeric: tabular-nums; }
@media (max-width: 700px) {
  td, th { padding-right: 6px; font-size: 12px; }
  th { white-space: normal; overflow-wrap: normal; }
  .kernels td:first-child { white-space: normal; min-width: 9em; }
  .kernels td.text { white-space: normal; min-width: 6em; }
}
)";

constexpr size_t kMostBars = 20, kMostKernels = 60, kLargestBlocks = 12;
constexpr int kLaunchesInARow = 60, kMostRows = 24;

// Each class of work or of waiting in the colour of its name.
std::string colour_rules(const TimeBreakdown& breakdown) {
  std::string text;
  for (const BreakdownRow& row : rows_of(breakdown))
    text += fmt::format(".{0} {{ fill: var(--{0}); background: var(--{0}); }}\n", style_class(row.name));
  return text;
}

std::string heading(const ProfileReport& report) {
  const ResolvedRun& run = report.resolved;
  const ModelConfig& m = run.asked.model;
  const RankSummary& rank = report.ranks[0];
  std::string mesh;
  for (const MeshAxis& axis : run.mesh.axes)
    if (axis.size > 1) mesh += fmt::format(", {} {}", axis.name, axis.size);
  std::string text = fmt::format(
      "<h1>Where a step's {:.3f} ms go</h1>\n<p>GPT with {} parameters ({} layers, {} heads, width {}, vocabulary {}), "
      "{} x {} tokens a micro-batch, {}{}; {}; {}.</p>\n<p>{} steps, {:.3f} ms each with nobody observing",
      rank.step_ms(), format_count(double(count_parameters(m))), m.layers, m.heads, m.width, m.vocab, run.batch,
      m.context, precision_name(run.compile.precision), mesh, escape_html(report.target.name), report.date, rank.steps,
      rank.plain_ms());
  if (rank.unrecorded_seconds != rank.plain_seconds)
    text += fmt::format(" (replayed from a recording; launched one by one {:.3f})", rank.unrecorded_ms());
  text += fmt::format("; {}. Kernels by {}.", describe_slowdown(rank), report.clock);
  if (std::string sensors = to_string(report.sensors); !sensors.empty()) text += " " + escape_html(sensors) + ".";
  return text + fmt::format("</p>\n<p><code>{}</code></p>\n", command_html(report.command));
}

std::string breakdown_part(const ProfileReport& report) {
  const RankSummary& rank = report.ranks[0];
  auto predicted = predicted_work(report);
  std::string text = "<h2>Time</h2>\n" + breakdown_bar(rank.breakdown) +
                     "<div class=\"wide\"><table><tr><th></th><th>ms a step</th><th>share</th><th>predicted "
                     "ms</th></tr>\n";
  std::vector<BreakdownRow> rows = rows_of(rank.breakdown);
  for (size_t i = 0; i < rows.size(); ++i)
    text += fmt::format(
        "<tr><td><i class=\"{}\"></i>{}</td><td>{:.3f}</td><td>{:.1f}%</td><td>{}</td></tr>\n",
        style_class(rows[i].name), rows[i].name, 1e3 * rows[i].seconds / double(rank.steps), rows[i].percent,
        i < predicted.size() && kWorkClasses[i] != WorkClass::kCopy ? fmt::format("{:.3f}", 1e3 * predicted[i]) : "");
  text += fmt::format(
      "<tr class=\"total\"><td>total</td><td>{:.3f}</td><td>100.0%</td><td>{:.3f}</td></tr>\n"
      "</table></div>\n",
      1e3 * rank.breakdown.sum() / double(rank.steps), 1e3 * report.predicted_seconds);
  if (rank.breakdown.hidden_communication > 0)
    text += fmt::format("<p>Beside it, communication that other work hides: {:.3f} ms.</p>\n",
                        1e3 * rank.breakdown.hidden_communication / double(rank.steps));
  return text;
}

std::string ranks_part(const std::vector<RankSummary>& ranks) {
  if (ranks.size() < 2) return "";
  std::string text = "<h2>Ranks</h2>\n";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += fmt::format("<div class=\"time\">rank {}: {:.3f} ms</div>{}", i, ranks[i].step_ms(),
                        breakdown_bar(ranks[i].breakdown));
  return text;
}

std::string roofline_part(const ProfileReport& report, PageCharts& charts) {
  return "<h2>Roofline</h2>\n<p>Each kernel by what it computes a byte and the FLOP/s that it reached; areas go by "
         "time. The table of kernels below has the numbers.</p>\n" +
         charts.add(roofline_chart(report.kernels, report.target));
}

std::string memory_part(const MemoryPicture& m) {
  if (m.blocks.empty()) return "";
  std::vector<const MemoryBlock*> largest;
  for (const MemoryBlock& block : m.blocks)
    if (block.at_peak) largest.push_back(&block);
  std::stable_sort(largest.begin(), largest.end(),
                   [](const MemoryBlock* a, const MemoryBlock* b) { return a->bytes > b->bytes; });
  size_t shown = std::min(kLargestBlocks, largest.size());
  std::string text = fmt::format(
      "<h2>Memory</h2>\n<p>The arena of <i>{}</i> over its run of {:.3f} ms, {} in all; most is taken at {:.3f} ms, "
      "{}, "
      "by {} (the line). In full colour: what is taken then.</p>\n{}<p>The largest of those {}:</p>\n<ul>\n",
      m.program, 1e3 * m.seconds, format_bytes(double(m.arena_bytes)), 1e3 * m.peak_seconds,
      format_bytes(double(m.peak_bytes)), escape_html(m.peak_kernel), memory_chart(m), largest.size());
  for (size_t i = 0; i < shown; ++i)
    text += fmt::format("<li>{} <small>{:.3f} to {:.3f} ms</small></li>\n", escape_html(largest[i]->label),
                        1e3 * largest[i]->begin, 1e3 * largest[i]->end);
  return text + "</ul>\n";
}

std::string timeline_part(const StepTimeline& timeline) {
  if (timeline.lanes.empty()) return "";
  size_t bars = 0;
  std::string streams;
  for (size_t i = 0; i < timeline.lanes.size(); ++i) {
    bars += timeline.lanes[i].bars.size();
    streams += (i ? ", " : "") + timeline.streams[i];
  }
  int rows = std::clamp(int(bars) / kLaunchesInARow, 1, kMostRows);
  return fmt::format("<h2>Timeline</h2>\n<p>The last step. In each row, from above: {}.</p>\n{}", streams,
                     timeline_chart(timeline.lanes, timeline.seconds, rows));
}

std::string kernels_part(const ProfileReport& report, PageCharts& charts) {
  bool any_tensor_cores = std::any_of(report.kernels.begin(), report.kernels.end(),
                                      [](const KernelProfile& k) { return !k.tensor_cores.empty(); });
  std::string text =
      "<h2>Predicted and measured</h2>\n<p>The kernels that take longest. Beside each name: measured, and in brackets "
      "predicted.</p>\n" +
      charts.add(prediction_chart(report.kernels, kMostBars)) +
      "<h2>Kernels</h2>\n<div class=\"wide kernels\"><table><tr><th>kernel</th><th "
      "class=\"text\">output</th><th>count</th>"
      "<th>ms</th><th>FLOP/s</th><th>bytes/s</th><th>of roof</th><th>predicted</th><th class=\"text\">" +
      std::string(any_tensor_cores ? "tensor cores" : "") + "</th></tr>\n";
  for (size_t i = 0; i < std::min(kMostKernels, report.kernels.size()); ++i) {
    const KernelProfile& k = report.kernels[i];
    auto rate = [&](double count, std::string_view unit) {
      return count > 0 && k.seconds > 0 ? format_count(count / k.seconds, unit) : std::string();
    };
    text += fmt::format(
        "<tr><td><i class=\"{}\"></i>{}</td><td class=\"text\">{}</td><td>{}</td><td>{:.3f}</td><td>{}"
        "</td><td>{}</td><td>{:.0f}%</td><td>{:.3f}</td><td class=\"text\">{}</td></tr>\n",
        to_string(k.work), escape_html(k.label), escape_html(k.shape), k.count, 1e3 * k.seconds,
        rate(k.flops, "FLOP/s"), rate(k.bytes, "B/s"), 100 * k.of_roof(), 1e3 * k.predicted,
        escape_html(k.tensor_cores));
  }
  return text + "</table></div>\n";
}

}  // namespace

std::string profile_page(const ProfileReport& report) {
  PageCharts charts;
  std::string roofline = roofline_part(report, charts), kernels = kernels_part(report, charts);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Tokamak: profile</title>\n"
      "<style>{}{}{}{}</style>\n</head>\n<body>\n{}{}{}{}{}{}{}{}{}</body>\n</html>\n",
      kStyle, tick_style(), PageCharts::style(), colour_rules(report.ranks[0].breakdown), heading(report),
      breakdown_part(report), ranks_part(report.ranks), roofline, memory_part(report.memory),
      timeline_part(report.timeline), kernels, PageCharts::library(), charts.scripts());
}

}  // namespace tokamak
