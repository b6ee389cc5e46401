#include "pages/plan_html.h"

#include "pages/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tokamak {
namespace {

// On a narrow screen a row has its name above its bar; nothing but the plan's text is wider than the screen.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d0d7de; --page: #ffffff; --panel: #f6f8fa;
        --c0: #0969da; --c1: #8250df; --c2: #1a7f37; --c3: #bf8700; --c4: #cf222e; --c5: #8c959f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --page: #0d1117; --panel: #151b23;
          --c0: #4493f8; --c1: #ab7df8; --c2: #3fb950; --c3: #d29922; --c4: #f85149; --c5: #6e7681; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 1100px;
       margin: 2em auto; padding: 0 1em; overflow-wrap: anywhere; }
h1 { font-size: 1.5em; margin-bottom: 0; }
h2 { font-size: 1.2em; margin: 1.5em 0 0; }
p, figcaption { color: var(--soft); }
figure { margin: 0.5em 0 2em; }
figcaption span { margin-right: 1em; white-space: nowrap; }
i { display: inline-block; }
figcaption i { width: 10px; height: 10px; border-radius: 5px; }
figcaption i.line { width: 0; height: 14px; border-left: 2px dashed var(--ink); border-radius: 0; vertical-align: middle; }
.row { display: grid; grid-template-columns: 28em 1fr 6em; column-gap: 0.8em; align-items: center; margin: 4px 0; }
.name { text-align: right; font-size: 13px; }
.value { text-align: right; font-variant-numeric: tabular-nums; font-size: 13px; }
.bar { display: flex; height: 16px; position: relative; }
.limit { position: absolute; top: -3px; bottom: -3px; border-left: 2px dashed var(--ink); }
.k0 { background: var(--c0); } .k1 { background: var(--c1); } .k2 { background: var(--c2); }
.k3 { background: var(--c3); } .k4 { background: var(--c4); } .k5 { background: var(--c5); }
pre { background: var(--panel); padding: 1em; overflow-x: auto; font-size: 12px; overflow-wrap: normal; }
@media (max-width: 45em) {
  .row { grid-template-columns: 1fr auto; }
  .name { text-align: left; }
  .bar { grid-area: 2 / 1 / 3 / -1; }
}
)";

struct Row {
  std::string name;
  std::vector<double> parts;
  std::string value;  // of their sum
};

double sum(const Row& row) {
  double total = 0;
  for (double part : row.parts) total += part;
  return total;
}

std::string draw(const Row& row, const std::vector<std::string>& kinds, double scale, double limit) {
  std::string bar;
  for (size_t i = 0; i < row.parts.size(); ++i)
    bar += fmt::format("<i class=\"k{}\" style=\"width:{:.2f}%\" title=\"{} {:.1f}%\"></i>", i,
                       100 * row.parts[i] / scale, kinds[i], 100 * row.parts[i] / sum(row));
  if (limit > 0) bar += fmt::format("<i class=\"limit\" style=\"left:{:.2f}%\"></i>", 100 * limit / scale);
  return fmt::format(
      "<div class=\"row\"><span class=\"name\">{}</span><span class=\"bar\">{}</span><span class=\"value\">{}</span>"
      "</div>\n",
      escape_html(row.name), bar, row.value);
}

// A dashed line stands at the limit, where there is one.
std::string chart(const std::vector<Row>& rows, const std::vector<std::string>& kinds, double limit) {
  std::string text = "<figure>\n<figcaption>";
  for (size_t i = 0; i < kinds.size(); ++i) text += fmt::format("<span><i class=\"k{}\"></i> {}</span> ", i, kinds[i]);
  if (limit > 0) text += "<span><i class=\"line\"></i> what a GPU has</span>";
  text += "</figcaption>\n";
  double scale = limit;
  for (const Row& row : rows) scale = std::max(scale, sum(row));
  for (const Row& row : rows) text += draw(row, kinds, scale, limit);
  return text + "</figure>\n";
}

std::string times(const std::vector<Estimate>& found) {
  std::vector<Row> rows;
  for (const Estimate& one : found) {
    const TimeByKind& t = one.time;
    rows.push_back({describe(one.layout),
                    {t.matmul, t.attention, t.memory_bound, t.recomputed, t.communication(), t.bubble},
                    fmt::format("{:.1f} ms", t.total() * 1e3)});
  }
  return chart(
      rows, {"matrix products", "attention", "memory-bound", "computed again", "exposed communication", "bubble"}, 0);
}

std::string memories(const std::vector<Estimate>& found, double limit) {
  std::vector<Row> rows;
  for (const Estimate& one : found) {
    const MemoryByKind& m = one.memory;
    rows.push_back({describe(one.layout),
                    {m.weights, m.gradients, m.optimizer, m.activations, m.buffers},
                    fmt::format("{:.1f} GiB", m.total() / double(int64_t(1) << 30))});
  }
  return chart(rows, {"weights", "gradients", "optimizer", "activations", "buffers"}, limit);
}

}  // namespace

std::string plan_html(const TrainingPlan& plan) {
  std::vector<Estimate> found = plan.found;
  found.resize(std::min(found.size(), kMostRows));
  const TrainingRequest& r = plan.request;
  std::string title = fmt::format("{} x {}", r.gpus, escape_html(r.cluster.gpu.name));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Tokamak plan: {0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>Layouts on {0}</h1>\n"
      "<p>Composed of a few compiled blocks, the fastest micro-batch of each mesh; the fastest {2} of those looked "
      "at.</p>\n"
      "<h2>Time of a step</h2>\n{3}<h2>Memory of the fullest GPU</h2>\n{4}<h2>The plan</h2>\n<pre>{5}</pre>\n"
      "</body>\n</html>\n",
      title, kStyle, found.size(), times(found), memories(found, r.cluster.gpu.memory_bytes.value),
      escape_html(format_plan(plan)));
}

}  // namespace tokamak
