#include "cli/progress_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace tokamak {

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && !phase_.empty()) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::show(const std::string& phase, int64_t done, int64_t total) {
  bool new_phase = phase != phase_;
  auto now = std::chrono::steady_clock::now();
  if (!new_phase && (!terminal_ || now - shown_ < std::chrono::milliseconds(100))) return;
  phase_ = phase;
  shown_ = now;
  if (!terminal_) return fmt::print(stderr, "{}\n", phase_);
  std::string share = total > 0 ? fmt::format(" {:.0f}%", 100.0 * double(done) / double(total)) : "";
  fmt::print(stderr, "\r\x1b[K{}{}", phase_, share);
  std::fflush(stderr);
}

}  // namespace tokamak
