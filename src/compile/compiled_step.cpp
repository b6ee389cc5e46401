#include "compile/compiled_step.h"

#include "plan/communication.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace tokamak {
namespace {

// Bytes of the parameters and states of all programs; those of one name are one.
std::map<std::string_view, int64_t> kept_bytes(const std::vector<CompiledGraph>& programs) {
  std::map<std::string_view, int64_t> bytes;
  for (const CompiledGraph& program : programs)
    for (const Argument& argument : program.plan.graph.arguments())
      if (argument.kind != Argument::Kind::kInput)
        bytes[argument.name] = num_bytes(program.plan.graph.type(argument.value));
  return bytes;
}

std::string name_of(const CompiledStep& step, const ProgramRun& run) {
  if (!run.transfer) return step.programs[run.program].name();
  return fmt::format("{} {}", run.transfer->sends ? "send" : "receive", run.transfer->state);
}

}  // namespace

int64_t CompiledStep::slot_of(int64_t data_rank, int64_t micro_batch) const {
  const Slots& all = resolved.slots;
  return all.sums_over_ranks_first ? micro_batch * all.ranks.size + data_rank : data_rank * all.runs() + micro_batch;
}

int64_t CompiledStep::runs_of(size_t program) const {
  return std::count_if(runs.begin(), runs.end(),
                       [&](const ProgramRun& run) { return !run.transfer && run.program == program; });
}

double CompiledStep::seconds() const {
  double seconds = 0;
  for (size_t p = 0; p < programs.size(); ++p) seconds += programs[p].plan.seconds * double(runs_of(p));
  return seconds;
}

double CompiledStep::exposed_seconds() const {
  double seconds = 0;
  for (size_t p = 0; p < programs.size(); ++p)
    seconds += (programs[p].plan.seconds - seconds_without_collectives(programs[p].plan)) * double(runs_of(p));
  return seconds;
}

double CompiledStep::flops() const {
  double flops = 0;
  for (size_t p = 0; p < programs.size(); ++p)
    for (const Launch& launch : programs[p].plan.launches) flops += launch.cost.flops * double(runs_of(p));
  return flops;
}

const CompiledGraph& CompiledStep::largest() const {
  return *std::max_element(programs.begin(), programs.end(), [](const CompiledGraph& a, const CompiledGraph& b) {
    return a.plan.arena_bytes < b.plan.arena_bytes;
  });
}

int64_t CompiledStep::scratch_bytes() const {
  int64_t bytes = 0;
  for (const CompiledGraph& program : programs) bytes += program.plan.scratch_bytes;
  return bytes;
}

int64_t CompiledStep::buffer_bytes() const {
  std::map<std::string_view, int64_t> kept = kept_bytes(programs);
  int64_t bytes = 0;
  for (const auto& [name, count] : buffers) bytes += count * kept[name];
  return bytes;
}

int64_t CompiledStep::intermediate_bytes() const { return largest().plan.arena_bytes + buffer_bytes(); }

int64_t CompiledStep::total_bytes() const {
  int64_t inputs = 0;
  for (const CompiledGraph& program : programs) inputs += program.plan.input_bytes;
  int64_t kept = buffer_bytes();
  for (const auto& [name, bytes] : kept_bytes(programs))
    if (!buffers.count(std::string(name))) kept += bytes;
  return kept + inputs + largest().plan.arena_bytes + scratch_bytes();
}

std::string print_runs(const CompiledStep& step) {
  std::string text;
  const std::vector<ProgramRun>& runs = step.runs;
  auto name = [&](size_t i) { return name_of(step, runs[i]); };
  for (size_t first = 0, next = 0; first < runs.size(); first = next) {
    size_t last = first;  // of the micro-batches that follow one another
    std::set<std::string> between, since;
    for (next = first + 1; next < runs.size() && runs[first].micro_batch >= 0; ++next) {
      if (runs[next].micro_batch < 0) {
        since.insert(name(next));
        continue;
      }
      if (name(next) != name(first) || runs[next].micro_batch != runs[last].micro_batch + 1) break;
      last = next;
      between.merge(since);
    }
    next = last + 1;
    text += (text.empty() ? "" : ", ") + name(first);
    if (runs[first].micro_batch >= 0) text += fmt::format(" {}", runs[first].micro_batch);
    if (last > first) text += fmt::format("-{}", runs[last].micro_batch);
    if (!between.empty()) text += fmt::format(" ({})", fmt::join(between, " "));
  }
  return text;
}

}  // namespace tokamak
