#include "run/start_phases.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

constexpr double kShownSeconds = 5e-3;

}  // namespace

void StartClock::lap(const std::string& name, Clock::time_point now) {
  phases_.push_back({name, std::chrono::duration<double>(now - last_).count()});
  last_ = now;
}

std::string format_start(const std::vector<StartPhase>& phases) {
  double total = 0, others = 0;
  std::string list;
  for (const StartPhase& phase : phases) {
    total += phase.seconds;
    if (phase.seconds < kShownSeconds)
      others += phase.seconds;
    else
      list += fmt::format("{:.2f} {}, ", phase.seconds, phase.name);
  }
  return fmt::format("start: {:.2f} s to the end of the first step: {}{:.2f} others", total, list, others);
}

}  // namespace tokamak
