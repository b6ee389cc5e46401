#include "plan/units.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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

// The largest remainders get what rounding down leaves.
std::vector<double> percentages(std::span<const double> parts) {
  constexpr int64_t kTenths = 1000;
  double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<double> shares(parts.size());
  if (!(sum > 0)) return shares;
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t(0));
  auto exact = [&](size_t i) { return double(kTenths) * parts[i] / sum; };
  int64_t left = kTenths;
  for (size_t i : order) left -= int64_t(shares[i] = std::floor(exact(i)));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return exact(a) - shares[a] > exact(b) - shares[b]; });
  for (size_t i = 0; i < order.size() && int64_t(i) < left; ++i) shares[order[i]] += 1;
  for (double& share : shares) share /= 10;
  return shares;
}

}  // namespace tokamak
