#include "plan/units.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

template <size_t N>
std::string format(double value, double step, const char* const (&units)[N], std::string_view suffix = {}) {
  size_t unit = 0;
  const double all = value;
  while (value >= step && unit + 1 < N) {
    value /= step;
    ++unit;
  }
  bool is_beyond = value >= step;  // all units
  if (is_beyond) unit = 0;
  std::string number = is_beyond   ? fmt::format("{:.2e}", all)
                       : unit == 0 ? fmt::format("{:.0f}", value)
                                   : fmt::format("{:.2f}", value);
  std::string name = fmt::format("{}{}", units[unit], suffix);
  return name.empty() ? number : number + " " + name;
}

}  // namespace

std::string format_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return format(bytes, 1024, kUnits);
}

std::string format_count(double count, std::string_view unit) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  return format(count, 1000, kUnits, unit);
}

}  // namespace tokamak
