// Ctrl-C and SIGTERM as a flag that a loop looks at between steps. Tests: tests/base/signals_test.cpp.
#pragma once

#include <csignal>
#include <string_view>

namespace tokamak {

/// While one lives (at most one in a process), SIGINT and SIGTERM only set a flag; a SIGINT after the first of
/// them ends the process at once, as it would have without us. What was installed before comes back at the end. Signals
/// that were ignored at the start (nohup, background jobs) stay ignored.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  /// Has one come?
  bool requested() const;
  /// "SIGINT", "SIGTERM", or empty while none has come.
  std::string_view name() const;

 private:
  struct sigaction old_interrupt_ = {};
  struct sigaction old_terminate_ = {};
};

}  // namespace tokamak
