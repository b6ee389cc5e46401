#include "compile/format_pipeline.h"

#include "plan/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

using Kind = PipeAction::Kind;

char letter(const PipeAction& action) {
  constexpr int64_t kDigits = 10, kLetters = 26;
  if (action.kind == Kind::kForward) return char('0' + action.micro_batch % kDigits);
  char first = action.kind == Kind::kBackwardWeight ? 'A' : 'a';
  return char(first + action.micro_batch % kLetters);
}

// What each stage does in the middle of each column.
std::string draw(const CompiledPipeline& pipeline, size_t width) {
  const PipeTimeline& timeline = pipeline.timeline;
  std::vector<std::string> rows(pipeline.stages.size(), std::string(width, '.'));
  double column = timeline.seconds / double(width);
  for (const PipeSpan& span : timeline.spans)
    for (size_t i = 0; i < width; ++i)
      if (double middle = (double(i) + 0.5) * column; span.start <= middle && middle < span.end)
        rows[size_t(span.stage)][i] = letter(span.action);
  std::string text;
  for (size_t stage = 0; stage < rows.size(); ++stage) text += fmt::format("  stage {:<3}|{}|\n", stage, rows[stage]);
  bool splits = std::any_of(timeline.spans.begin(), timeline.spans.end(),
                            [](const PipeSpan& span) { return span.action.kind == Kind::kBackwardWeight; });
  return text + fmt::format("  0-9 forward of a micro-batch, a-z backward{}, . waits\n",
                            splits ? ", A-Z its gradients of parameters where they come later" : "");
}

std::string blocks_of(const CompiledPipeline& pipeline, int64_t stage) {
  std::string text;
  for (int64_t chunk = stage; chunk < pipeline.schedule.chunks; chunk += pipeline.schedule.stages) {
    int64_t first = pipeline.first_block[size_t(chunk)], last = pipeline.first_block[size_t(chunk) + 1] - 1;
    text += text.empty() ? "" : ", ";
    text += first > last ? "none" : first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

double count_parameters(const CompiledStep& stage) {
  double count = 0;
  for (const Argument& a : stage.programs.back().plan.graph.arguments())
    if (a.kind == Argument::Kind::kParameter) count += double(num_elements(a.spec.global));
  return count;
}

}  // namespace

std::string format_pipeline(const CompiledPipeline& pipeline, size_t width) {
  const PipeSchedule& schedule = pipeline.schedule;
  std::string text = fmt::format(
      "pipeline   {} stages, {}, {} micro-batches: bubble {:.1f}%, predicted {:.1f} ms\n\n"
      "  {:<7}{:<20}{:>11}{:>11}{:>12}{:>12}{:>10}\n",
      schedule.stages, pipeline.resolved.asked.mesh.schedule, schedule.micro_batches, 100 * pipeline.timeline.bubble,
      pipeline.seconds() * 1e3, "stage", "blocks", "parameters", "in flight", "activations", "memory", "busy ms");
  for (int64_t s = 0; s < schedule.stages; ++s) {
    const CompiledStep& stage = pipeline.stages[size_t(s)];
    text += fmt::format("  {:<7}{:<20}{:>11}{:>11}{:>12}{:>12}{:>10.1f}\n", s, blocks_of(pipeline, s),
                        format_count(count_parameters(stage)), pipeline.timeline.in_flight[size_t(s)],
                        format_bytes(double(stage.buffer_bytes())), format_bytes(double(stage.total_bytes())),
                        stage.seconds() * 1e3);
  }
  return text + "\n" + draw(pipeline, width);
}

}  // namespace tokamak
