// Numbers as people read them in tables and messages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

std::string format_bytes(double bytes);                              // 12 B, 3.40 KiB, 1.25 GiB
std::string format_count(double count, std::string_view unit = {});  // 12, 3.40 k, 1.25 GFLOP/s

/// Parts as percentages of their sum with one decimal, which add up to 100.0 as they are printed: each is rounded down
/// or up, and those up that lose most otherwise. All 0 where the sum is.
std::vector<double> percentages(std::span<const double> parts);

}  // namespace tokamak
