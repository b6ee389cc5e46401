#include "run/slow_saves.h"

#include <fmt/format.h>

#include <utility>

namespace tokamak {
namespace {

constexpr double kLeastSeconds = 1, kLeastShare = 0.01;  // of the steps' time

}  // namespace

std::string SlowSaves::note(const SaveWait& wait) {
  bool matters = wait.seconds >= kLeastSeconds && wait.seconds >= kLeastShare * wait.steps;
  if (!matters || std::exchange(is_told_, true)) return {};
  return fmt::format(
      "steps stood still for {:.1f} s, as the save of step {} took {:.1f} s and the next one was due after {:.1f} s: a "
      "larger train.checkpoint_every, or train.out on a faster disk with train.archive on this one, avoids that",
      wait.seconds, wait.step, wait.save, wait.steps);
}

}  // namespace tokamak
