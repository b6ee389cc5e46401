#include "plan/memory.h"

#include "base/error.h"
#include "plan/arena.h"
#include "plan/print_plan.h"  // kernel_label
#include "plan/units.h"

#include <algorithm>

namespace tokamak {
namespace {

// The value that has the block at that time: the last one defined by then.
ValueId value_at(const Graph& graph, const Block& block, int node) {
  ValueId value = block.values.front();
  for (ValueId next : block.values)
    if (graph.producer(next) <= node) value = next;
  return value;
}

std::string list_largest(const MemoryPeak& peak, const char* separator) {
  std::string list;
  for (const NamedTensor& tensor : peak.largest)
    list += fmt::format("{}{} {} ({})", list.empty() ? "" : separator, tensor.name, to_string(tensor.type),
                        format_bytes(double(tensor.bytes)));
  return list;
}

}  // namespace

std::string value_name(const Graph& graph, ValueId value) {
  if (const Argument* argument = graph.argument_of(value)) return argument->name;
  for (const Result& result : graph.results())
    if (result.value == value) return result.name;
  const Node& node = graph.nodes()[size_t(graph.producer(value))];
  const Argument* source = nullptr;
  for (ValueId input : node.inputs)
    if (const Argument* argument = graph.argument_of(input))
      if (!source || (source->kind != Argument::Kind::kParameter && argument->kind == Argument::Kind::kParameter))
        source = argument;
  std::string name = fmt::format("%{} = {}", value, kernel_label(node));
  return source ? fmt::format("{} of {}", name, source->name) : name;
}

MemoryPeak find_peak(const Plan& plan, size_t count) {
  std::vector<int64_t> live = live_bytes(plan.blocks, int(plan.graph.nodes().size()));
  MemoryPeak peak;
  peak.node = int(std::max_element(live.begin(), live.end()) - live.begin());
  ValueIds alive;
  for (const Argument& argument : plan.graph.arguments()) alive.push_back(argument.value);
  for (const Block& block : plan.blocks)
    if (block.first <= peak.node && peak.node <= block.last) alive.push_back(value_at(plan.graph, block, peak.node));
  std::stable_sort(alive.begin(), alive.end(),
                   [&](ValueId a, ValueId b) { return num_bytes(plan.graph.type(a)) > num_bytes(plan.graph.type(b)); });
  alive.resize(std::min(alive.size(), count));
  for (ValueId value : alive) {
    const ValueType& type = plan.graph.type(value);
    peak.largest.push_back({value_name(plan.graph, value), type, num_bytes(type)});
  }
  return peak;
}

std::string format_memory(const Plan& plan) {
  auto line = [](const char* name, int64_t bytes) {
    return fmt::format("{:<14}{:>12}\n", name, format_bytes(double(bytes)));
  };
  std::string text = line("parameters", plan.parameter_bytes) + line("states", plan.state_bytes) +
                     line("inputs", plan.input_bytes) + line("intermediates", plan.arena_bytes) +
                     line("scratch", plan.scratch_bytes) + line("total", plan.total_bytes());
  MemoryPeak peak = find_peak(plan);
  if (!peak.largest.empty()) text += "largest at the peak:\n  " + list_largest(peak, "\n  ") + "\n";
  return text;
}

void require_fits(const Plan& plan, int64_t available_bytes, const std::function<std::string()>& advice) {
  if (plan.total_bytes() <= available_bytes) return;
  user_error(
      "[memory] expected a plan of at most {}, got a peak of {} (parameters {}, states {}, inputs {}, intermediates "
      "{}, scratch memory of kernels {}); {}; the largest tensor is {}",
      format_bytes(double(available_bytes)), format_bytes(double(plan.total_bytes())),
      format_bytes(double(plan.parameter_bytes)), format_bytes(double(plan.state_bytes)),
      format_bytes(double(plan.input_bytes)), format_bytes(double(plan.arena_bytes)),
      format_bytes(double(plan.scratch_bytes)), advice(), list_largest(find_peak(plan, 1), ""));
}

}  // namespace tokamak
