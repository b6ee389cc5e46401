// Ctrl-C and the other requests to end as a flag that a loop looks at between steps. Tests:
// tests/base/signals_test.cpp.
#pragma once

#include <array>
#include <csignal>
#include <string_view>

namespace tokamak {

/// While one lives (at most one in a process), SIGINT, SIGTERM and SIGHUP only set a flag. One more ends the process at
/// once, as it would have without us: a SIGINT always, the others a second after the first, as terminals, launchers and
/// service managers tell one request by several signals at a time. What was installed before comes back at the end.
/// Signals that were ignored at the start (nohup, background jobs) stay ignored.
class StopSignal {
 public:
  /// `notice` goes to standard error at once when the first one comes; it must live as long as the process.
  explicit StopSignal(std::string_view notice = {});
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  /// Has one come?
  bool requested() const;
  /// "SIGINT", "SIGTERM", "SIGHUP", or empty while none has come.
  std::string_view name() const;

 private:
  struct Old {
    int number;
    struct sigaction action = {};
  };
  std::array<Old, 3> old_ = {{{SIGINT}, {SIGTERM}, {SIGHUP}}};
};

/// The exit status of work that the last StopSignal ended early, as shells give it: 128 + the signal's number. 0 when
/// none came.
int stopped_status();

}  // namespace tokamak
