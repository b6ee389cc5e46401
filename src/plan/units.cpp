#include "plan/units.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

template <size_t N>
std::string format(double value, double step, const char* const (&units)[N]) {
  size_t unit = 0;
  while (value >= step && unit + 1 < N) {
    value /= step;
    ++unit;
  }
  std::string number = unit == 0 ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
  return *units[unit] ? number + " " + units[unit] : number;
}

}  // namespace

std::string format_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return format(bytes, 1024, kUnits);
}

std::string format_count(double count) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  return format(count, 1000, kUnits);
}

}  // namespace tokamak
