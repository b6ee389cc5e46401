#include "pages/ladder_html.h"

#include "base/bytes.h"
#include "base/printable.h"
#include "config/model_config.h"
#include "ladder/mesh_table.h"
#include "model/model.h"
#include "pages/html.h"
#include "pages/ticks.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

// Nothing needs to be scrolled sideways: on a narrow screen a rung of the chart has its letters above its bars, and a
// row of the table becomes a block in which every number has its column's name.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d0d7de; --page: #ffffff; --panel: #f6f8fa;
        --measured: #0969da; --aside: #7d8fa3; --predicted: #d4790a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --page: #0d1117; --panel: #151b23;
          --measured: #4493f8; --aside: #8b98a8; --predicted: #e3a04a; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 1100px;
       margin: 2em auto; padding: 0 1em; overflow-wrap: anywhere; }
h1 { font-size: 1.5em; margin-bottom: 0; }
h2 { font-size: 1.2em; margin: 1.5em 0 0; }
p { color: var(--soft); }
figure { margin: 1.5em 0; }
figcaption span { margin-left: 1em; white-space: nowrap; }
figcaption i { display: inline-block; width: 10px; height: 10px; border-radius: 5px; }
.measured { background: var(--measured); }
.measured.aside { background: var(--aside); }
.predicted { background: var(--predicted); }
.rung { display: grid; grid-template-columns: 15em 1fr auto; column-gap: 0.8em; align-items: center; margin: 6px 0; }
.name { text-align: right; }
.rate { min-width: 7em; text-align: right; font-variant-numeric: tabular-nums; }
.bars i { display: block; height: 6px; margin-top: 2px; }
.bars .measured { height: 15px; }
.failure { grid-column: 2 / -1; color: var(--soft); }
table { border-collapse: collapse; font-size: 13px; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 6px; border-bottom: 1px solid var(--line); text-align: right; vertical-align: bottom;
         overflow-wrap: normal; }
th:first-child, td:first-child, td.text { text-align: left; }
td:first-child { white-space: nowrap; }
tr.aside td { color: var(--soft); }
pre { background: var(--panel); padding: 1em; white-space: pre-wrap; font-size: 13px; }
@media (max-width: 45em) {
  .rung { grid-template-columns: 1fr auto; }
  .name { text-align: left; }
  .bars { grid-area: 2 / 1 / 3 / -1; }
  .failure { grid-column: 1 / -1; }
}
@media (max-width: 68em) {
  thead { display: none; }
  tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(6.5em, 1fr)); padding: 8px 0;
       border-bottom: 1px solid var(--line); }
  td { border: 0; padding: 2px 0; text-align: left; }
  td:first-child, td.text { grid-column: 1 / -1; }
  td:first-child { font-weight: bold; }
  td::before { content: attr(data-column); display: block; color: var(--soft); font-size: 12px; }
}
)";

struct Column {
  std::string name, value;
};

std::vector<Column> columns_of(const RungResult& r) {
  return {{"ms", fmt::format("{:.2f}", r.ms)},
          {"least to most", fmt::format("{:.2f} to {:.2f}", r.least_ms, r.most_ms)},
          {"predicted", fmt::format("{:.2f}", r.predicted_ms)},
          {"error", fmt::format("{:+.1f}%", 100 * r.prediction_error())},
          {"tokens/s", fmt::format("{:.0f}", r.tokens_per_second)},
          {"x previous", fmt::format("{:.2f}", r.speedup_step)},
          {"x first", fmt::format("{:.2f}", r.speedup_total)},
          {"MFU", fmt::format("{:.1f}%", 100 * r.mfu)},
          {"MFU causal", fmt::format("{:.1f}%", 100 * r.mfu_causal)},
          {"planned MiB", fmt::format("{:.1f}", double(r.planned_bytes) / kMiB)},
          {"used MiB", fmt::format("{:.1f}", double(r.used_bytes) / kMiB)},
          {"first step", fmt::format("{:.2f} s", r.first_step_ms * 1e-3)}};
}

std::vector<Column> columns_of(const MeshResult& m) {
  const RungResult& r = m.run;
  return {{"batch", fmt::format("{}", m.sequences)},
          {"ms", fmt::format("{:.2f}", r.ms)},
          {"predicted", fmt::format("{:.2f}", r.predicted_ms)},
          {"error", fmt::format("{:+.1f}%", 100 * r.prediction_error())},
          {"tokens/s", fmt::format("{:.0f}", r.tokens_per_second)},
          {"x one rank", format_speedup(m)},
          {"efficiency", format_efficiency(m)},
          {"exposed ms", format_exposed(m)},
          {"exposed predicted", fmt::format("{:.2f}", m.predicted_exposed_ms)},
          {"MFU", fmt::format("{:.1f}%", 100 * r.mfu)},
          {"planned MiB", fmt::format("{:.1f}", double(r.planned_bytes) / kMiB)},
          {"used MiB", fmt::format("{:.1f}", double(r.used_bytes) / kMiB)}};
}

struct Row {
  const RungResult& run;
  std::vector<Column> columns;
  std::string note;
};

std::string table_row(const Row& row) {
  const RungResult& r = row.run;
  std::string text = fmt::format("<tr{}><td>{}</td>", r.kept ? "" : " class=\"aside\"", escape_html(r.name));
  if (!r.ran())
    return text + fmt::format("<td class=\"text\" colspan=\"{}\">{}</td></tr>\n", row.columns.size() + 1,
                              escape_html(r.failure));
  for (const Column& column : row.columns)
    text += fmt::format("<td data-column=\"{}\">{}</td>", column.name, column.value);
  return text + fmt::format("<td class=\"text\">{}</td></tr>\n", row.note);
}

std::string table(const std::vector<Row>& rows) {
  std::string text = "<table>\n<thead><tr><th>rung</th>";
  for (const Column& column : rows[0].columns) text += "<th>" + column.name + "</th>";
  text += "<th></th></tr></thead>\n<tbody>\n";
  for (const Row& row : rows) text += table_row(row);
  return text + "</tbody></table>\n";
}

std::string rung_table(const std::vector<RungResult>& rungs) {
  std::vector<Row> rows;
  for (const RungResult& rung : rungs) {
    std::string note = rung_note(rung);
    if (!rung.repeats.empty()) note += fmt::format("{}{} times", note.empty() ? "" : ", ", rung.repeats.size());
    rows.push_back({rung, columns_of(rung), note});
  }
  return table(rows);
}

// Chart and table of the meshes; nothing where there are none.
std::string meshes(const LadderReport& report) {
  if (report.meshes.empty()) return "";
  std::vector<RungResult> bars;
  if (const RungResult* best = best_rung(report.rungs)) {
    bars.push_back(*best);
    bars.back().speedup_total = 1;
    bars.back().name = "one rank: " + best->name;
  }
  std::vector<Row> rows;
  for (const MeshResult& mesh : report.meshes) {
    bars.push_back(mesh.run);
    rows.push_back({mesh.run, columns_of(mesh), ""});
  }
  return fmt::format(
      "<h2>{} ranks</h2>\n<p>The best rung of one rank, divided over all in different ways, with as many sequences for "
      "each of them as the one had alone. <em>Batch</em>: sequences of a step, of all ranks; <em>exposed</em>: by "
      "how much a step is longer than one that sends nothing, and for how long, as predicted, nothing but "
      "communication runs; MiB are of a rank.</p>\n{}{}",
      report.meshes[0].ranks, ladder_chart(bars), table(rows));
}

std::string summary(const LadderReport& report) {
  const ModelConfig& m = report.config.model;
  return fmt::format(
      "<h1>Speed ladder: {}</h1>\n<p>GPT with {:.1f} M parameters ({} layers, {} heads, width {}, vocabulary {}), "
      "{} x {} tokens a micro-batch; {}</p>\n",
      escape_html(report.target.name), double(count_parameters(m)) * 1e-6, m.layers, m.heads, m.width, m.vocab,
      report.config.train.batch, m.context, escape_html(report.date));
}

std::string notes(const LadderReport& report) {
  std::string text =
      "<p>Every rung adds its change to the last kept one and is measured on random tokens: the median of the timed "
      "steps, after warm-up. One that seems slower than the rung before is measured again, in turns with that one, and "
      "the medians count. <em>Slower</em> rungs and those measured <em>aside</em> are left out of the rungs after "
      "them; <em>same</em> changes nothing here. <em>Predicted</em> is the planner's roofline; on a GPU matmuls and "
      "attention count as each was measured alone. MFU is tokens/s times 6N + 12LCT FLOPs, causal 6N + 6LCT, over the "
      "peak (L layers, C width, T context, N parameters without position embeddings).</p>\n<ul>\n";
  for (const std::string& name : peak_names(report.rungs)) text += fmt::format("<li>peak {}</li>\n", escape_html(name));
  const Target& t = report.target;
  text += fmt::format("<li>{}, units {}: {:.0f} GFLOP/s fp32, {:.0f} bf16, {:.1f} GB/s</li>\n", escape_html(t.name),
                      t.units, t.f32_flops * 1e-9, t.bf16_flops * 1e-9, t.memory_bandwidth * 1e-9);
  if (!report.versions.empty()) text += fmt::format("<li>{}</li>\n", escape_html(report.versions));
  return text + "</ul>\n";
}

}  // namespace

std::string ladder_html(const LadderReport& report) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Tokamak speed ladder: "
      "{}</title>\n<style>{}{}</style>\n</head>\n<body>\n{}{}{}{}{}<pre style=\"white-space: "
      "normal\">{}</pre>\n</body>\n</html>\n",
      escape_html(report.target.name), kStyle, tick_style(), summary(report), ladder_chart(report.rungs),
      rung_table(report.rungs), meshes(report), notes(report), command_html(report.command));
}

}  // namespace tokamak
