#include "plan/units.h"
#include "profile/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string format_times(const RankSummary& rank) {
  std::string text = fmt::format("{:.3f} ms a step over {} steps; ", rank.step_ms(), rank.steps);
  if (rank.unrecorded_seconds != rank.plain_seconds)
    text += fmt::format("{:.3f} ms replayed from a recording, {:.3f} ms launched one by one; ", rank.plain_ms(),
                        rank.unrecorded_ms());
  else
    text += fmt::format("{:.3f} ms with nobody observing; ", rank.plain_ms());
  return text + describe_slowdown(rank) + "\n";
}

// Of a step of rank 0, with what was predicted where that is said.
std::string format_breakdown(const ProfileReport& report) {
  const RankSummary& rank = report.ranks[0];
  std::string text =
      fmt::format("\n{:<24} {:>10} {:>7} {:>12}\n", "where the time goes", "ms a step", "share", "predicted ms");
  auto predicted = predicted_work(report);
  auto line = [&](std::string_view name, double seconds, double percent, const std::string& more) {
    text += fmt::format("{:<24} {:>10.3f} {:>6.1f}%{}\n", name, 1e3 * seconds / double(rank.steps), percent, more);
  };
  std::vector<BreakdownRow> rows = rows_of(rank.breakdown);
  for (size_t i = 0; i < rows.size(); ++i)
    line(rows[i].name, rows[i].seconds, rows[i].percent,
         i < predicted.size() && kWorkClasses[i] != WorkClass::kCopy ? fmt::format(" {:>12.3f}", 1e3 * predicted[i])
                                                                     : "");
  line("total", rank.breakdown.sum(), 100, fmt::format(" {:>12.3f}", 1e3 * report.predicted_seconds));
  if (rank.breakdown.hidden_communication > 0)
    text += fmt::format("beside it, communication that other work hides: {:.3f} ms\n",
                        1e3 * rank.breakdown.hidden_communication / double(rank.steps));
  return text;
}

std::string format_ranks(const std::vector<RankSummary>& ranks) {
  if (ranks.size() < 2) return "";
  std::string text = fmt::format("\n{:<6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "rank", "ms a step", "work %",
                                 "exposed %", "gaps %", "data %", "idle %");
  for (size_t i = 0; i < ranks.size(); ++i) {
    const TimeBreakdown& breakdown = ranks[i].breakdown;
    double exposed = breakdown.of(WorkClass::kCommunication);
    double work = breakdown.sum() - breakdown.launch_gaps - breakdown.data_wait - breakdown.idle - exposed;
    text += fmt::format("{:<6} {:>10.3f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", i, ranks[i].step_ms(),
                        percent(work, breakdown.total), percent(exposed, breakdown.total),
                        percent(breakdown.launch_gaps, breakdown.total), percent(breakdown.data_wait, breakdown.total),
                        percent(breakdown.idle, breakdown.total));
  }
  return text;
}

std::string format_classes(const std::vector<KernelProfile>& kernels) {
  std::vector<OperatorClass> classes = operator_classes(kernels);
  double flops = 0, seconds = 0;
  for (const OperatorClass& c : classes) flops += c.flops, seconds += c.seconds;
  std::string text = fmt::format("\n{:<26} {:>10} {:>12}\n", "forward and backward", "% FLOPs", "% run time");
  for (const OperatorClass& c : classes)
    text += fmt::format("{:<26} {:>10.2f} {:>12.1f}\n", c.name, percent(c.flops, flops), percent(c.seconds, seconds));
  return text;
}

std::string format_rate(double count, double seconds, std::string_view unit) {
  return count > 0 && seconds > 0 ? format_count(count / seconds, unit) : "";
}

std::string format_kernel(const KernelProfile& k, std::string_view work, double step_seconds) {
  double s = k.seconds;
  return fmt::format("{:<34.34} {:<20.20} {:<13} {:>5.0f} {:>9.3f} {:>5.1f}% {:>13} {:>12} {:>6.1f}% {:>9.3f}  {}\n",
                     k.label, k.shape, work, k.count, 1e3 * s, percent(s, step_seconds),
                     format_rate(k.flops, s, "FLOP/s"), format_rate(k.bytes, s, "B/s"), 100 * k.of_roof(),
                     1e3 * k.predicted, k.tensor_cores);
}

std::string format_kernels(const ProfileReport& report, size_t max_kernels) {
  const RankSummary& rank = report.ranks[0];
  double step_seconds = rank.seconds / double(rank.steps);
  size_t shown = std::min(max_kernels, report.kernels.size());
  bool any = std::any_of(report.kernels.begin(), report.kernels.end(),
                         [](const KernelProfile& k) { return !k.tensor_cores.empty(); });
  std::string text = fmt::format("\n{:<34} {:<20} {:<13} {:>5} {:>9} {:>6} {:>13} {:>12} {:>7} {:>9}  {}\n", "kernel",
                                 "output", "class", "count", "ms", "share", "FLOP/s", "bytes/s", "of roof", "predicted",
                                 any ? "tensor cores" : "");
  KernelProfile rest{.label = fmt::format("({} more kinds)", report.kernels.size() - shown)};
  for (size_t i = 0; i < report.kernels.size(); ++i) {
    const KernelProfile& kernel = report.kernels[i];
    if (i < shown) text += format_kernel(kernel, to_string(kernel.work), step_seconds);
    if (i >= shown) {
      rest.count += kernel.count, rest.flops += kernel.flops, rest.bytes += kernel.bytes;
      rest.seconds += kernel.seconds, rest.predicted += kernel.predicted, rest.roof += kernel.roof;
    }
  }
  return rest.count > 0 ? text + format_kernel(rest, "", step_seconds) : text;
}

}  // namespace

std::string format_profile(const ProfileReport& report, size_t max_kernels) {
  std::string sensors = to_string(report.sensors);
  return format_times(report.ranks[0]) + fmt::format("kernels by {}\n", report.clock) +
         (sensors.empty() ? "" : sensors + "\n") + format_breakdown(report) + format_ranks(report.ranks) +
         format_classes(report.kernels) + format_kernels(report, max_kernels);
}

}  // namespace tokamak
