#include "train/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tokamak {
namespace {

constexpr int kMinBar = 10;  // columns, brackets included

std::string format_ms(double ms) {
  if (ms >= 10'000) return fmt::format("{:.1f} s", ms / 1000);
  return ms < 10 ? fmt::format("{:.2f} ms", ms) : fmt::format("{:.0f} ms", ms);
}

std::string format_rate(double gflops, double percent_of_peak) {
  std::string text = gflops >= 1000 ? fmt::format("{:.1f} TFLOP/s", gflops / 1000)
                     : gflops >= 10 ? fmt::format("{:.0f} GFLOP/s", gflops)
                                    : fmt::format("{:.2f} GFLOP/s", gflops);
  return percent_of_peak > 0 ? text + fmt::format(" ({:.0f}% of peak)", percent_of_peak) : text;
}

std::string format_eta(double seconds) { return "ETA " + format_duration(seconds); }

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " | ") + part;
  return text;
}

double fraction_done(int64_t step, int64_t total) {
  return total > 0 ? std::clamp(double(step) / double(total), 0.0, 1.0) : 1.0;
}

std::string format_bar(double fraction, int width) {
  int inner = width - 2, full = int(fraction * inner);
  std::string bar(size_t(full), '=');
  if (full < inner) bar += '>';
  bar.resize(size_t(inner), ' ');
  return "[" + bar + "]";
}

}  // namespace

std::string format_step_line(const StepMetrics& m, int64_t total_steps, double eta_seconds) {
  std::string total = std::to_string(total_steps);
  std::vector<std::string> parts = {fmt::format("step {:>{}}/{}", m.step, total.size() + 1, total),
                                    fmt::format("loss {:.4f}", m.loss)};
  if (m.val_loss) parts.push_back(fmt::format("val {:.4f}", *m.val_loss));
  parts.push_back(fmt::format("norm {:.2f}", m.grad_norm));
  if (m.loss_scale) parts.push_back(fmt::format("scale {:g}", *m.loss_scale));
  if (m.skipped.value_or(0) > 0) parts.push_back(fmt::format("{} skipped", *m.skipped));
  parts.push_back(fmt::format("lr {:.1e}", m.lr));
  parts.push_back(format_ms(m.ms));
  if (double share = m.data_wait_ms / m.ms; share > kShownDataWait)
    parts.push_back(fmt::format("data wait {:.0f}%", std::min(100 * share, 100.0)));
  parts.push_back(format_count(m.tokens_per_second) + " tok/s");
  parts.push_back(format_rate(m.gflops, m.percent_of_peak));
  if (eta_seconds >= 0) parts.push_back(format_eta(eta_seconds));
  return join(parts);
}

std::string format_progress_bar(const StepMetrics& m, int64_t total_steps, double eta_seconds, int width) {
  double fraction = fraction_done(m.step, total_steps);
  std::vector<std::string> parts = {fmt::format("{}/{}", m.step, total_steps), fmt::format("loss {:.4f}", m.loss),
                                    format_count(m.tokens_per_second) + " tok/s"};
  if (eta_seconds >= 0) parts.push_back(format_eta(eta_seconds));
  size_t columns = size_t(std::max(width, 0));
  std::string head = fmt::format("{:3.0f}% ", std::floor(fraction * 100)), tail = join(parts);
  int room = int(columns) - int(head.size() + tail.size() + 1);
  std::string line = room >= kMinBar ? head + format_bar(fraction, room) + " " + tail : head + tail;
  line.resize(columns, ' ');
  return line;
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  int64_t s = std::llround(std::clamp(seconds, 0.0, 1e12));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string format_count(double value) {
  static constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  // 999.5 would print as 1000 of the smaller unit.
  for (; std::fabs(value) >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  if (unit == 0) return fmt::format("{:.0f}", value);
  double size = std::fabs(value);
  return fmt::format("{:.{}f}{}", value, size < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string overflow_warning(const StepMetrics& m, double clip) {
  if (!std::isinf(m.grad_norm) || m.loss_scale || clip <= 0) return {};
  return fmt::format(
      "warning: the gradient of step {} has an infinite norm, and clipping to optimizer.clip = {} made it zero: the "
      "step "
      "changed nothing. If that goes on, lower --optimizer.lr or raise --optimizer.warmup_steps",
      m.step, clip);
}

}  // namespace tokamak
