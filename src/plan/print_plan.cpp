#include "plan/print_plan.h"

#include "ops/group.h"
#include "ops/matmul.h"
#include "ops/row_block.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

std::string located(const Plan& plan, ValueId value) {
  const Location& location = plan.locations[size_t(value)];
  if (location.argument == kNoValue) return fmt::format("%{}@{}", value, location.offset);
  return fmt::format("%{}@{}", value, plan.graph.argument_of(location.argument)->name);
}

std::string located(const Plan& plan, const ValueIds& values) {
  std::string list;
  for (ValueId value : values) list += (list.empty() ? "" : ", ") + located(plan, value);
  return list;
}

std::string ordered(const Plan& plan, const Launch& launch) {
  std::string text = launch.stream == 0 ? "" : fmt::format(" on stream {}", launch.stream);
  for (size_t i = 0; i < launch.after.size(); ++i)
    text += fmt::format("{}{}", i ? ", " : " after ", plan.launches[size_t(launch.after[i])].node);
  for (int stream : launch.after_last_run) text += fmt::format(" after stream {} of the last run", stream);
  return text;
}

}  // namespace

std::string print_plan(const Plan& plan) {
  std::string text =
      fmt::format("plan {}: arena {}, parameters {}, states {}, inputs {}, scratch {}\n", plan.graph.name(),
                  plan.arena_bytes, plan.parameter_bytes, plan.state_bytes, plan.input_bytes, plan.scratch_bytes);
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    text += fmt::format("{} {}({}) -> {}{}\n", launch.node, kernel_label(node), located(plan, node.inputs),
                        located(plan, node.outputs), ordered(plan, launch));
  }
  for (const CopyBack& copy : plan.copies)
    text += fmt::format("copy {} = {}\n", located(plan, copy.target), located(plan, copy.value));
  return text;
}

std::string kernel_label(const Node& node, size_t max_length) {
  if (node.op == &op::row_block) return kernel_label(node.body->nodes()[0], max_length);
  if (!node.body) return std::string(node.op->name);
  std::string list, last;
  int repeated = 0;
  auto flush = [&] {
    if (repeated == 0) return;
    list += (list.empty() ? "" : " ") + last + (repeated > 1 ? fmt::format("*{}", repeated) : "");
  };
  for (const Node& inner : node.body->nodes()) {
    if (inner.inputs.empty() || inner.op->fusion == Fusion::kView) continue;  // constants and new shapes: no news
    if (inner.op->name != last) {
      flush();
      last = inner.op->name;
      repeated = 0;
    }
    ++repeated;
  }
  flush();
  std::string label = fmt::format("{}[{}", (node.op == &op::fused_matmul ? op::matmul : *node.op).name, list);
  if (label.size() + 1 > max_length) label = label.substr(0, max_length - 4) + "...";
  return label + "]";
}

}  // namespace tokamak
