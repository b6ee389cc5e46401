#include "train/ladder_html.h"

#include "config/model_config.h"
#include "model/model.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d0d7de; --page: #ffffff; --panel: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --page: #0d1117; --panel: #151b23; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 1100px;
       margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; }
p { color: var(--soft); }
svg { width: 100%; min-width: 46em; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 8px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, td.text { text-align: left; }
tr.aside td { color: var(--soft); }
pre { background: var(--panel); padding: 1em; overflow-x: auto; font-size: 13px; }
)";

constexpr double kMiB = double(1 << 20);

std::string table_row(const RungResult& r) {
  std::string open = fmt::format("<tr{}><td>{}</td>", r.kept ? "" : " class=\"aside\"", escape_html(r.name));
  if (!r.ran()) return open + fmt::format("<td class=\"text\" colspan=\"12\">{}</td></tr>\n", escape_html(r.failure));
  return open + fmt::format(
                    "<td>{:.2f}</td><td>{:.2f}</td><td>{:+.1f}%</td><td>{:.0f}</td><td>{:.2f}</td><td>{:.2f}</td>"
                    "<td>{:.1f}%</td><td>{:.1f}%</td><td>{:.1f}</td><td>{:.1f}</td><td>{:.2f} s</td>"
                    "<td class=\"text\">{}</td></tr>\n",
                    r.ms, r.predicted_ms, 100 * r.prediction_error(), r.tokens_per_second, r.speedup_step,
                    r.speedup_total, 100 * r.mfu, 100 * r.mfu_causal, double(r.planned_bytes) / kMiB,
                    double(r.used_bytes) / kMiB, r.first_step_ms * 1e-3, rung_note(r));
}

std::string table(const std::vector<RungResult>& rungs) {
  std::string text =
      "<div "
      "class=\"scroll\"><table>\n<thead><tr><th>rung</th><th>ms</th><th>predicted</th><th>error</th><th>tokens/s</th>"
      "<th>x previous</th><th>x first</th><th>MFU</th><th>MFU causal</th><th>planned MiB</th><th>used MiB</th>"
      "<th>first step</th><th></th></tr></thead>\n<tbody>\n";
  for (const RungResult& rung : rungs) text += table_row(rung);
  return text + "</tbody></table></div>\n";
}

/// Narrow screens scroll it, as letters that shrink with it could not be read.
std::string chart(const std::vector<RungResult>& rungs) {
  return "<div class=\"scroll\">" + ladder_chart(rungs) + "</div>\n";
}

std::string summary(const LadderReport& report) {
  const ModelConfig& m = report.config.model;
  return fmt::format(
      "<h1>Speed ladder: {}</h1>\n<p>GPT with {:.1f} M parameters ({} layers, {} heads, width {}, vocabulary {}), {} x "
      "{} "
      "tokens a micro-batch; {}</p>\n",
      escape_html(report.target.name), double(count_parameters(m)) * 1e-6, m.layers, m.heads, m.width, m.vocab,
      report.config.train.batch, m.context, escape_html(report.date));
}

std::string notes(const LadderReport& report) {
  std::string text =
      "<p>Every rung adds its change to the last kept one and is measured on random tokens: the median of the timed "
      "steps, "
      "after warm-up. <em>Slower</em> rungs and those measured <em>aside</em> are left out of the rungs after them; "
      "<em>same</em> changes nothing here. <em>Predicted</em> is the planner's roofline; on a GPU matmuls and "
      "attention count as each was measured alone. MFU is tokens/s times "
      "6N + 12LCT FLOPs, causal 6N + 6LCT, over the peak (L layers, C width, T context, N parameters without position "
      "embeddings).</p>\n<ul>\n";
  for (const std::string& name : peak_names(report.rungs)) text += fmt::format("<li>peak {}</li>\n", escape_html(name));
  const Target& t = report.target;
  text += fmt::format("<li>{}: {} units, {:.0f} GFLOP/s fp32, {:.0f} bf16, {:.1f} GB/s</li>\n", escape_html(t.name),
                      t.units, t.f32_flops * 1e-9, t.bf16_flops * 1e-9, t.memory_bandwidth * 1e-9);
  if (!report.versions.empty()) text += fmt::format("<li>{}</li>\n", escape_html(report.versions));
  return text + "</ul>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string ladder_html(const LadderReport& report) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Tokamak speed ladder: "
      "{}</title>\n<style>{}</style>\n</head>\n<body>\n{}{}{}{}<pre>{}</pre>\n</body>\n</html>\n",
      escape_html(report.target.name), kStyle, summary(report), chart(report.rungs), table(report.rungs), notes(report),
      escape_html(report.command));
}

}  // namespace tokamak
