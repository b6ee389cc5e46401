// Where the time goes before the first step is done. Tests: tests/run/start_phases_test.cpp.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tokamak {

struct StartPhase {
  std::string name;
  double seconds = 0;
};

/// A clock whose laps have names; no time is left out between them.
class StartClock {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StartClock(Clock::time_point now = Clock::now()) : last_(now) {}

  /// The time since the last lap goes to the phase `name`.
  void lap(const std::string& name, Clock::time_point now = Clock::now());

  /// What `work` gives; its time, and what passed since the last lap, goes to the phase `name`.
  template <class Work>
  auto time(const std::string& name, Work&& work) {
    Lap lap{*this, name};
    return work();
  }

  const std::vector<StartPhase>& phases() const { return phases_; }

 private:
  struct Lap {
    StartClock& clock;
    const std::string& name;
    ~Lap() { clock.lap(name); }
  };

  Clock::time_point last_;
  std::vector<StartPhase> phases_;
};

/// "start: 1.42 s to the end of the first step: 0.15 program, 0.62 device, ..."; phases below 5 ms count as "others".
std::string format_start(const std::vector<StartPhase>& phases);

}  // namespace tokamak
