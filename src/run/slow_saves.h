// Whether steps stand still because a save is not done when the next one is due. Tests: tests/run/slow_saves_test.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak {

/// How long a save waited for the one before.
struct SaveWait {
  int64_t step = 0;    // of the save that was waited for
  double seconds = 0;  // that steps stood still
  double save = 0;     // seconds that it took, with that wait,
  double steps = 0;    // and those from when it began until the next one was due
};

class SlowSaves {
 public:
  /// What the user is to know, the first time that a wait is long enough to matter; else empty.
  std::string note(const SaveWait& wait);

 private:
  bool is_told_ = false;
};

}  // namespace tokamak
