#include "base/error.h"
#include "plan/memory.h"
#include "plan/print_plan.h"
#include "plan/units.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tokamak {
namespace {

// Kernels that differ in their operands only.
struct Line {
  std::string label, shape;
  Cost cost;  // of all of them
  double seconds = 0, measured = 0;
  int count = 0;
  bool memory_bound = false;
};

void add(Line& line, const Launch& launch, double measured) {
  line.cost.flops += launch.cost.flops;
  line.cost.bytes += launch.cost.bytes;
  line.seconds += launch.seconds;
  line.measured += measured;
  line.memory_bound = launch.memory_bound;
  ++line.count;
}

std::vector<Line> collect(const Plan& plan, std::span<const double> measured) {
  std::vector<Line> lines;
  std::map<std::tuple<std::string, std::string, double, double>, size_t> known;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    std::string label = kernel_label(node), shape = to_string(plan.graph.type(node.outputs[0]));
    auto [at, is_new] = known.try_emplace({label, shape, launch.cost.flops, launch.cost.bytes}, lines.size());
    if (is_new) lines.push_back({label, shape});
    add(lines[at->second], launch, measured.empty() ? 0 : measured[i]);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return std::max(a.seconds, a.measured) > std::max(b.seconds, b.measured);
  });
  return lines;
}

Line fold(const std::vector<Line>& lines, size_t first) {
  Line rest{fmt::format("({} more kinds)", lines.size() - first), ""};
  for (size_t i = first; i < lines.size(); ++i) {
    rest.cost.flops += lines[i].cost.flops;
    rest.cost.bytes += lines[i].cost.bytes;
    rest.seconds += lines[i].seconds;
    rest.measured += lines[i].measured;
    rest.count += lines[i].count;
  }
  return rest;
}

// What was measured, and the rate that it makes: of arithmetic where that limits the kernel, else of memory.
std::string format_measured(const Line& line) {
  if (line.measured == 0) return "";
  std::string rate = line.memory_bound ? format_count(line.cost.bytes / line.measured, "B/s")
                                       : format_count(line.cost.flops / line.measured, "FLOP/s");
  return fmt::format(" {:>9.3f} {:>14}", line.measured * 1e3, rate);
}

std::string format_line(const Line& line, double total, const char* bound) {
  double intensity = line.cost.bytes > 0 ? line.cost.flops / line.cost.bytes : 0;
  return fmt::format("{:<40} {:<22} {:>5} {:>10} {:>10} {:>9.2f} {:>11.3f} {:<7} {:>5.1f}%{}\n", line.label, line.shape,
                     line.count, format_count(line.cost.flops), format_bytes(line.cost.bytes), intensity,
                     line.seconds * 1e3, bound, total > 0 ? 100 * line.seconds / total : 0, format_measured(line));
}

}  // namespace

std::string format_kernels(const Plan& plan, size_t max_lines, std::span<const double> measured) {
  TOKAMAK_CHECK(measured.empty() || measured.size() == plan.launches.size(), "{} launches, {} of them measured",
                plan.launches.size(), measured.size());
  std::vector<Line> lines = collect(plan, measured);
  std::string text = fmt::format("{:<40} {:<22} {:>5} {:>10} {:>10} {:>9} {:>11} {:<7} {:>6}{}\n", "kernel", "output",
                                 "count", "FLOPs", "bytes", "FLOP/byte", "predict. ms", "bound", "share",
                                 measured.empty() ? "" : fmt::format(" {:>9} {:>14}", "meas. ms", "rate"));
  // A line for the rest is worth it only when it replaces two or more.
  size_t shown = lines.size() > max_lines + 1 ? max_lines : lines.size();
  for (size_t i = 0; i < shown; ++i)
    text += format_line(lines[i], plan.seconds, lines[i].memory_bound ? "memory" : "compute");
  if (shown < lines.size()) text += format_line(fold(lines, shown), plan.seconds, "");
  Line total = fold(lines, 0);
  total.label = "total";
  text += format_line(total, plan.seconds, "");
  return text + "\n" + format_memory(plan);
}

}  // namespace tokamak
