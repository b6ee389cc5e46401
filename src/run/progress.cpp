#include "run/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace tokamak {
namespace {

constexpr int kMinBar = 10;  // columns, brackets included

std::string format_ms(double ms) {
  if (ms >= 10'000) return fmt::format("{:.1f} s", ms / 1000);
  return ms < 10 ? fmt::format("{:.2f} ms", ms) : fmt::format("{:.0f} ms", ms);
}

std::string format_eta(double seconds) { return "ETA " + format_duration(seconds); }

std::string format_memory(int64_t bytes) {
  double mib = double(bytes) / double(1 << 20);
  return mib < 1024 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

/// A piece of a line, and how much it is wanted: 0 most.
struct Part {
  int rank;
  std::string text;
};

/// The parts in their order, but those that are wanted least where all would be wider than `width`.
std::string join(std::vector<Part> parts, size_t width) {
  constexpr std::string_view kBetween = " | ";
  auto columns = [&] {
    size_t sum = 0;
    for (const Part& part : parts) sum += part.text.size() + kBetween.size();
    return sum - kBetween.size();
  };
  while (parts.size() > 1 && columns() > width)
    parts.erase(
        std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; }));
  std::string text;
  for (const Part& part : parts) text += std::string(text.empty() ? "" : kBetween) + part.text;
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

std::string format_milliseconds(double seconds) {
  constexpr double kLong = 10;
  return seconds < kLong ? fmt::format("{:.3g} ms", 1e3 * seconds) : format_duration(seconds);
}

}  // namespace

std::string format_step_line(const StepMetrics& m, int64_t total_steps, double eta_seconds, size_t width) {
  std::string total = std::to_string(total_steps);
  std::vector<Part> parts = {{0, fmt::format("step {:>{}}/{}", m.step, total.size() + 1, total)},
                             {0, (m.steps > 1 ? "mean loss " : "loss ") + format_number(m.loss, 4)}};
  if (m.val_loss) parts.push_back({0, fmt::format("val {}", format_number(*m.val_loss, 4))});
  parts.push_back({0, fmt::format("norm {}", format_number(m.grad_norm, 2))});
  if (m.loss_scale) parts.push_back({1, fmt::format("scale {:g}", *m.loss_scale)});
  if (m.skipped.value_or(0) > 0) parts.push_back({1, fmt::format("{} skipped", *m.skipped)});
  if (m.shadow) parts.push_back({1, fmt::format("shadow {:.4f}", m.shadow->least)});
  if (m.shadow && m.shadow->saturated > 0) parts.push_back({1, fmt::format("{} saturated", m.shadow->saturated)});
  if (m.lr > 0) parts.push_back({2, fmt::format("lr {:.1e}", m.lr)});
  parts.push_back({5, format_ms(m.ms)});
  if (double share = m.data_wait_ms / m.ms; share > kShownDataWait)
    parts.push_back({1, fmt::format("data wait {:.0f}%", std::min(100 * share, 100.0))});
  parts.push_back({1, format_count(m.tokens_per_second) + " tok/s"});
  if (m.mfu > 0) parts.push_back({4, fmt::format("{:.0f}% MFU", 100 * m.mfu)});
  if (eta_seconds >= 0) parts.push_back({3, format_eta(eta_seconds)});
  return join(std::move(parts), width);
}

std::string format_outline(const RunOutline& o) {
  bool alike = double(o.steps - o.done) * double(o.step_tokens) == o.tokens;
  std::string memory = format_memory(o.memory_bytes);
  std::string copy =
      o.copy_bytes > 0 ? fmt::format(", and {} of the host's for saves", format_memory(o.copy_bytes)) : "";
  std::string saved =
      o.checkpoint_every > 0 ? fmt::format("every {} steps and at the end", o.checkpoint_every) : "at the end";
  std::string cost;
  if (o.dollars_per_hour > 0)
    cost = fmt::format(", ${:.2f} at ${:.2f} an hour (as of {} in `tokamak plan --clusters`)",
                       o.seconds / 3600 * o.dollars_per_hour, o.dollars_per_hour, o.priced_as);
  return fmt::format(
      "{} parameters in {}, {} of memory planned{}\n"
      "steps {} to {} of {}{} tokens: {} tokens, {:.3g} epochs of {}\n"
      "predicted: a step of {}, all of them {}{}\n"
      "MFU is the share of {}\n"
      "saved {} in {}",
      format_count(double(o.parameters)), o.precision, memory, copy, o.done + 1, o.steps, alike ? "" : "up to ",
      o.step_tokens, format_count(o.tokens), o.tokens / double(o.epoch_tokens), format_count(double(o.epoch_tokens)),
      format_milliseconds(o.step_seconds), format_duration(o.seconds), cost, o.peak, saved, o.out);
}

std::string format_progress_bar(int64_t step, int64_t total_steps, double eta_seconds, int width) {
  double fraction = fraction_done(step, total_steps);
  std::string tail = fmt::format("{}/{}", step, total_steps);
  if (eta_seconds >= 0) tail += " | " + format_eta(eta_seconds);
  size_t columns = size_t(std::max(width, 0));
  std::string head = fmt::format("{:3.0f}% ", std::floor(fraction * 100));
  int room = int(columns) - int(head.size() + tail.size() + 1);
  std::string line = room >= kMinBar ? head + format_bar(fraction, room) + " " + tail : head + tail;
  line.resize(columns, ' ');
  return line;
}

std::string format_number(double value, int digits) {
  constexpr double kLong = 1e7;
  if (std::isnan(value)) return "nan";
  return std::fabs(value) < kLong ? fmt::format("{:.{}f}", value, digits) : fmt::format("{:.{}e}", value, digits);
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

std::string grace_warning(double grace, double step_seconds, double save_seconds, bool has_ranks) {
  double step = has_ranks ? step_seconds : std::min(step_seconds, kShareOfGrace * grace), needed = step + save_seconds;
  if (grace <= 0 || save_seconds <= 0 || needed <= grace) return {};
  return fmt::format(
      "warning: to end a step and save takes {}, more than the {} from a request to stop to a kill "
      "(train.grace_seconds): the steps since the last checkpoint are lost then. Save more often "
      "(--train.checkpoint_every), or ask the system for more time",
      format_duration(std::ceil(needed)), format_duration(grace));
}

std::string skipped_warning(const StepMetrics& m) {
  if (m.applied || m.loss_scale) return {};
  return fmt::format(
      "warning: the gradients of step {} are not finite (norm {}): the step changed nothing. If that goes on, lower "
      "--optimizer.lr or raise --optimizer.warmup_steps",
      m.step, format_number(m.grad_norm, 2));
}

}  // namespace tokamak
