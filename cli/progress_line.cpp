#include "cli/progress_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include <utility>

#include "base/printable.h"
#include "cli/streams.h"

namespace tokamak {

namespace {

constexpr std::chrono::seconds kSampleSpan(5);

std::string share_of(int64_t done, int64_t total) {
  return total > 0 ? fmt::format(" {:.0f}%", 100.0 * double(done) / double(total)) : "";
}

std::string format_time(double seconds) {
  int64_t whole = int64_t(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

ProgressLine::ProgressLine() : terminal_(takes_escape_codes(STDERR_FILENO)) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && !phase_.empty()) print_to_stderr("\r\x1b[K");
}

void ProgressLine::show(const std::string& phase, int64_t done, int64_t total) {
  if (is_due(phase)) print(share_of(done, total));
}

void ProgressLine::show_bytes(const std::string& phase, int64_t done, int64_t total) {
  auto now = std::chrono::steady_clock::now();
  if (phase != phase_) before_ = last_ = {now, done};
  if (now - last_.time > kSampleSpan) before_ = std::exchange(last_, {now, done});
  if (!is_due(phase)) return;
  double seconds = std::chrono::duration<double>(now - before_.time).count();
  double speed = seconds > 0 ? double(done - before_.done) / seconds : 0;
  std::string more = share_of(done, total);
  if (speed > 0) more += fmt::format(", {:.1f} MB/s", speed / 1e6);
  if (speed > 0 && total > 0) more += fmt::format(", {} left", format_time(double(total - done) / speed));
  print(more);
}

void ProgressLine::note(const std::string& text) {
  print_to_stderr(fmt::format("{}{}\n", terminal_ ? "\r\x1b[K" : "", printable(text)));
}

/// True where the line changes now; takes notice of the phase.
bool ProgressLine::is_due(const std::string& phase) {
  bool new_phase = phase != phase_;
  auto now = std::chrono::steady_clock::now();
  if (!new_phase && (!terminal_ || now - shown_ < std::chrono::milliseconds(100))) return false;
  phase_ = phase;
  shown_ = now;
  return true;
}

void ProgressLine::print(const std::string& more) {
  std::string phase = printable(phase_);
  print_to_stderr(terminal_ ? fmt::format("\r\x1b[K{}{}", phase, more) : phase + "\n");
}

}  // namespace tokamak
