#include "pages/timeline_html.h"

#include "model/model.h"
#include "pages/html.h"
#include "pages/ticks.h"
#include "pages/timeline_chart.h"
#include "plan/communication.h"
#include "plan/kernel_lines.h"
#include "plan/print_plan.h"
#include "plan/units.h"
#include "profile/step_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace tokamak {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --page: #ffffff; --panel: #eef1f4; --line: #d5dae0;
        --forward: #6ea8e5; --backward: #2f6db5; --update: #8b98a5; --exposed: #d1242f;
        --data: #d4790a; --context: #2da44e; --tensor: #8250df; --pipe: #bf3989; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --page: #0d1117; --panel: #1c232c; --line: #30373f;
          --forward: #79b8ff; --backward: #3f7fcb; --update: #7d8793; --exposed: #ff6a69;
          --data: #e3a04a; --context: #57ab5a; --tensor: #a583f0; --pipe: #db61a2; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 1100px;
       margin: 2em auto; padding: 0 1em; overflow-wrap: anywhere; }
h1 { font-size: 1.5em; margin-bottom: 0; }
h2 { font-size: 1.15em; margin: 1.5em 0 0; }
p { color: var(--soft); margin: 0.4em 0; }
figure { margin: 1em 0; }
figcaption span { margin-right: 1em; white-space: nowrap; }
figcaption i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; }
svg { display: block; width: 100%; margin-top: 6px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
td, th { padding: 2px 12px 2px 0; text-align: right; font-weight: normal; vertical-align: top; overflow-wrap: normal; }
th { color: var(--soft); border-bottom: 1px solid var(--line); }
td:first-child, th:first-child, td.text, th.text { text-align: left; }
.lane { fill: var(--panel); }
.forward { fill: var(--forward); background: var(--forward); }
.backward { fill: var(--backward); background: var(--backward); }
.update { fill: var(--update); background: var(--update); }
.data { fill: var(--data); background: var(--data); }
.context { fill: var(--context); background: var(--context); }
.tensor { fill: var(--tensor); background: var(--tensor); }
.pipe { fill: var(--pipe); background: var(--pipe); }
.exposed { fill: var(--exposed); background: var(--exposed); }
)";

constexpr int kLaunchesInARow = 60, kMostRows = 24;

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "backward";
    case Phase::kUpdate: return "update";
  }
  return "";
}

TimelineBar bar_of(const Plan& plan, const ProductFinder& finder, const Launch& launch, const Span& span) {
  const Node& node = plan.graph.nodes()[size_t(launch.node)];
  TimelineBar bar{span.begin, span.end, std::string(phase_name(node.phase)),
                  kernel_label(node) + product_of(finder, node)};
  if (node.op->together) {
    bar.kind = node.attrs.get_string("axis");
    bar.title += fmt::format(" over {}: {} {}, {} sent", bar.kind, node.inputs.size(),
                             node.inputs.size() == 1 ? "tensor" : "tensors", format_bytes(launch.cost.link_bytes));
  } else if (!node.outputs.empty()) {
    bar.title += " " + to_string(plan.graph.type(node.outputs[0]));
  }
  bar.title += fmt::format(", {:.3f} ms at {:.3f}", (span.end - span.begin) * 1e3, span.begin * 1e3);
  return bar;
}

// A lane for each stream, and a thin one of what is exposed.
std::vector<TimelineLane> lanes_of(const Plan& plan, const std::vector<Span>& timeline) {
  ProductFinder finder(plan.graph);
  std::vector<TimelineLane> lanes(plan.streams.size());
  TimelineLane exposed{.height = 4, .bars = {}};
  std::vector<std::vector<Span>> spans = exposed_spans(plan, timeline);
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    lanes[size_t(plan.launches[i].stream)].bars.push_back(bar_of(plan, finder, plan.launches[i], timeline[i]));
    for (const Span& span : spans[i])
      exposed.bars.push_back(
          {span.begin, span.end, "exposed", fmt::format("exposed: {:.3f} ms", (span.end - span.begin) * 1e3)});
  }
  if (!exposed.bars.empty()) lanes.push_back(std::move(exposed));
  return lanes;
}

std::string legend_entry(std::string_view kind, std::string_view text) {
  return fmt::format("<span><i class=\"{}\"></i> {}</span> ", kind, text);
}

std::string legend(const Plan& plan, const std::vector<Communication>& sums) {
  std::string streams, text;
  for (const PlannedStream& stream : plan.streams) streams += (streams.empty() ? "" : ", ") + stream.name;
  for (Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate})
    if (std::any_of(plan.launches.begin(), plan.launches.end(), [&](const Launch& launch) {
          const Node& node = plan.graph.nodes()[size_t(launch.node)];
          return node.phase == phase && !node.op->together;
        }))
      text += legend_entry(phase_name(phase), phase_name(phase));
  std::map<std::string, Communication> axes;
  for (const Communication& sum : sums) {
    auto [axis, is_first] = axes.try_emplace(sum.axis, sum);
    if (!is_first) axis->second.add(sum);
  }
  for (const auto& [axis, sum] : axes)
    text += legend_entry(axis, fmt::format("{}: {} collectives, {}, {:.2f} ms", axis_label(sum), sum.collectives,
                                           format_bytes(sum.link_bytes), sum.seconds * 1e3));
  if (!axes.empty()) text += legend_entry("exposed", "exposed");
  return fmt::format("<figcaption>{}<p>In each row, from above: {}{}.</p></figcaption>\n", text, streams,
                     axes.empty() ? "" : "; below, what of it is exposed: nothing else runs");
}

// What bars tell where there is nothing to point with.
std::string kernel_table(const Plan& plan) {
  constexpr size_t kMost = 20;
  std::vector<KernelLine> lines = kernel_lines(plan);
  double all = 0, rest = 0;
  for (const KernelLine& line : lines) all += line.seconds;
  std::string text =
      "<div class=\"wide\"><table><tr><th>kernel</th><th>ms</th><th>share</th><th>count</th>"
      "<th class=\"text\">output</th></tr>\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i >= kMost) {
      rest += lines[i].seconds;
      continue;
    }
    text += fmt::format("<tr><td>{}</td><td>{:.3f}</td><td>{:.1f}%</td><td>{}</td><td class=\"text\">{}</td></tr>\n",
                        escape_html(lines[i].label), 1e3 * lines[i].seconds, 100 * lines[i].seconds / all,
                        lines[i].count, escape_html(lines[i].shape));
  }
  if (lines.size() > kMost)
    text += fmt::format("<tr><td>{} more kinds</td><td>{:.3f}</td><td>{:.1f}%</td><td></td><td></td></tr>\n",
                        lines.size() - kMost, 1e3 * rest, 100 * rest / all);
  return text + "</table></div>\n";
}

std::string program_part(const CompiledStep& step, size_t index) {
  const Plan& plan = step.programs[index].plan;
  std::vector<Span> timeline = simulate(plan);
  std::vector<Communication> sums = sum_communication(plan, timeline);
  Communication all;
  for (const Communication& sum : sums) all.add(sum);
  int rows = std::clamp(int(plan.launches.size()) / kLaunchesInARow, 1, kMostRows);
  std::string text =
      fmt::format("<h2>{}</h2>\n<p>{} time{} a step, {:.2f} ms", escape_html(step.programs[index].name()),
                  step.runs_of(index), step.runs_of(index) == 1 ? "" : "s", plan.seconds * 1e3);
  if (all.collectives > 0)
    text += fmt::format("; communication {:.2f} ms, of which {:.2f} ({:.1f}% of the time) are exposed",
                        all.seconds * 1e3, all.exposed * 1e3, 100 * all.exposed / plan.seconds);
  return text + ".</p>\n<figure>\n" + legend(plan, sums) +
         timeline_chart(lanes_of(plan, timeline), plan.seconds, rows) + "</figure>\n" + kernel_table(plan);
}

std::string summary(const ResolvedRun& run, double seconds, const Target& target) {
  const ModelConfig& m = run.asked.model;
  std::string axes;
  for (const MeshAxis& axis : run.mesh.axes)
    if (axis.size > 1) axes += fmt::format(", {} {}", axis.name, axis.size);
  return fmt::format(
      "<h1>Predicted step: {:.2f} ms</h1>\n<p>GPT with {:.1f} M parameters ({} layers, {} heads, width {}, vocabulary "
      "{}), {} x {} tokens a micro-batch; one rank{}{}; {}.</p>\n",
      seconds * 1e3, double(count_parameters(m)) * 1e-6, m.layers, m.heads, m.width, m.vocab, run.batch, m.context,
      axes.empty() ? "" : " of a mesh of", axes.empty() ? "" : axes.substr(1), escape_html(target.name));
}

std::string_view bar_kind(PipeAction::Kind kind) {
  if (kind == PipeAction::Kind::kForward) return "forward";
  return kind == PipeAction::Kind::kBackwardWeight ? "update" : "backward";
}

std::string stage_table(const CompiledPipeline& pipeline) {
  std::vector<std::array<double, 2>> seconds(pipeline.stages.size());
  for (const PipeSpan& span : pipeline.timeline.spans)
    seconds[size_t(span.stage)][span.action.kind == PipeAction::Kind::kForward ? 0 : 1] += span.end - span.start;
  std::string text =
      "<div class=\"wide\"><table><tr><th>stage</th><th>forward ms</th><th>backward ms</th><th>idle</th></tr>\n";
  for (size_t i = 0; i < seconds.size(); ++i)
    text += fmt::format("<tr><td>{}</td><td>{}</td><td>{:.3f}</td><td>{:.1f}%</td></tr>\n", i,
                        seconds[i][0] > 0 ? fmt::format("{:.3f}", 1e3 * seconds[i][0]) : "with backward",
                        1e3 * seconds[i][1], 100 * (1 - (seconds[i][0] + seconds[i][1]) / pipeline.timeline.seconds));
  return text + "</table></div>\n";
}

std::string pipeline_part(const CompiledPipeline& pipeline) {
  std::vector<TimelineLane> lanes(pipeline.stages.size());
  for (const PipeSpan& span : pipeline.timeline.spans)
    lanes[size_t(span.stage)].bars.push_back(
        {span.start, span.end, std::string(bar_kind(span.action.kind)),
         fmt::format("stage {}: {}, {:.2f} ms", span.stage, pipe_label(pipeline.schedule, span.action),
                     (span.end - span.start) * 1e3)});
  return fmt::format(
      "<h2>{}</h2>\n<p>{} stages from above, {} micro-batches; bubble {:.1f}%.</p>\n<figure>\n<figcaption>{}{}{}"
      "</figcaption>\n{}</figure>\n{}",
      pipeline.resolved.asked.mesh.schedule, pipeline.schedule.stages, pipeline.schedule.micro_batches,
      100 * pipeline.timeline.bubble, legend_entry("forward", "forward"), legend_entry("backward", "backward"),
      pipeline.schedule.splits_backward(pipeline.schedule.chunks - 1)
          ? legend_entry("update", "gradients of parameters")
          : "",
      timeline_chart(lanes, pipeline.timeline.seconds, 1), stage_table(pipeline));
}

std::string page(const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Tokamak: predicted "
      "step</title>\n"
      "<style>{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      kStyle, tick_style(), body);
}

}  // namespace

std::string timeline_html(const CompiledStep& step, const Target& target) {
  std::string parts;
  for (size_t p = 0; p < step.programs.size(); ++p) parts += program_part(step, p);
  return page(summary(step.resolved, step.seconds(), target) + parts);
}

std::string timeline_html(const CompiledPipeline& pipeline, const Target& target) {
  return page(summary(pipeline.resolved, pipeline.seconds(), target) + pipeline_part(pipeline));
}

}  // namespace tokamak
