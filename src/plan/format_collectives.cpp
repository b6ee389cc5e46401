#include "plan/print_plan.h"
#include "plan/units.h"

#include <fmt/core.h>

#include <map>
#include <tuple>

namespace tokamak {
namespace {

struct Line {
  int count = 0;
  double link_bytes = 0, seconds = 0;

  void add(const Launch& launch) {
    ++count;
    link_bytes += launch.cost.link_bytes;
    seconds += launch.seconds;
  }
};

std::string format_line(std::string_view op, std::string_view axis, std::string_view output, const Line& line) {
  return fmt::format("{:<16} {:<10} {:<22} {:>5} {:>12} {:>11.3f}\n", op, axis, output, line.count,
                     format_bytes(line.link_bytes), line.seconds * 1e3);
}

}  // namespace

std::string format_collectives(const Plan& plan) {
  std::map<std::tuple<std::string, std::string, std::string>, Line> lines;  // by op, axis and what it gives
  Line total;
  for (const Launch& launch : plan.launches) {
    const Node& node = plan.graph.nodes()[size_t(launch.node)];
    if (!node.op->together) continue;
    std::string axis = fmt::format("{}:{}", node.attrs.get_string("axis"), node.attrs.get_int("size"));
    lines[{std::string(node.op->name), axis, to_string(plan.graph.type(node.outputs[0]))}].add(launch);
    total.add(launch);
  }
  if (lines.empty()) return {};
  std::string text = fmt::format("{:<16} {:<10} {:<22} {:>5} {:>12} {:>11}\n", "collective", "axis", "output", "count",
                                 "sent", "predict. ms");
  for (const auto& [key, line] : lines) {
    const auto& [op, axis, output] = key;
    text += format_line(op, axis, output, line);
  }
  return text + format_line("total", "", "", total);
}

}  // namespace tokamak
