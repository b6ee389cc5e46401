// A moment as tables have it.
#pragma once

#include <fmt/chrono.h>

#include <ctime>
#include <string>

namespace tokamak {

/// `2026-01-31 12:00:00 UTC`, of seconds since the epoch.
inline std::string format_time(double seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time_t(seconds)));
}

}  // namespace tokamak
