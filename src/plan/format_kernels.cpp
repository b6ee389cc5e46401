#include "plan/kernel_lines.h"
#include "plan/memory.h"
#include "plan/print_plan.h"
#include "plan/units.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

constexpr int kNoNode = -1;

// Several lines as one.
KernelLine fold(const std::vector<KernelLine>& lines, size_t first) {
  KernelLine rest{.label = fmt::format("({} more kinds)", lines.size() - first), .node = kNoNode};
  for (size_t i = first; i < lines.size(); ++i) rest.add(lines[i]);
  return rest;
}

// What was measured, and the rate that it makes: of arithmetic where that limits the kernel, else of memory.
std::string format_measured(const KernelLine& line) {
  if (line.measured == 0) return "";
  std::string rate = line.memory_bound ? format_count(line.cost.bytes / line.measured, "B/s")
                                       : format_count(line.cost.flops / line.measured, "FLOP/s");
  return fmt::format(" {:>9.3f} {:>14}", line.measured * 1e3, rate);
}

std::string format_line(const KernelLine& line, double percent, const char* bound) {
  double intensity = line.cost.bytes > 0 ? line.cost.flops / line.cost.bytes : 0;
  return fmt::format("{:<40} {:<22} {:>5} {:>10} {:>10} {:>9.2f} {:>11.3f} {:<7} {:>5.1f}%{}\n", line.label, line.shape,
                     line.count, format_count(line.cost.flops), format_bytes(line.cost.bytes), intensity,
                     line.seconds * 1e3, bound, percent, format_measured(line));
}

}  // namespace

std::string format_kernels(const Plan& plan, size_t max_lines, std::span<const double> measured) {
  std::vector<KernelLine> lines = kernel_lines(plan, measured);
  std::string text = fmt::format("{:<40} {:<22} {:>5} {:>10} {:>10} {:>9} {:>11} {:<7} {:>6}{}\n", "kernel", "output",
                                 "count", "FLOPs", "bytes", "FLOP/byte", "predict. ms", "bound", "share",
                                 measured.empty() ? "" : fmt::format(" {:>9} {:>14}", "meas. ms", "rate"));
  KernelLine total = fold(lines, 0);
  total.label = "total";
  // A line for the rest is worth it only when it replaces two or more.
  if (lines.size() > max_lines + 1) {
    KernelLine rest = fold(lines, max_lines);
    lines.resize(max_lines);
    lines.push_back(std::move(rest));
  }
  std::vector<double> seconds;
  for (const KernelLine& line : lines) seconds.push_back(line.seconds);
  std::vector<double> shares = percentages(seconds);
  for (size_t i = 0; i < lines.size(); ++i)
    text += format_line(lines[i], shares[i],
                        lines[i].node == kNoNode ? ""
                        : lines[i].memory_bound  ? "memory"
                                                 : "compute");
  text += format_line(total, total.seconds > 0 ? 100 : 0, "");
  return text + "\n" + format_memory(plan);
}

}  // namespace tokamak
