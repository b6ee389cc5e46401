// Ticks of an axis beside a drawing of our own: round numbers and where they stand. Tests: tests/pages/ticks_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

/// Round numbers (1, 2 or 5 of a power of ten apart) from `begin` to `end`, at least two and at most `most` of them
/// where begin < end.
std::vector<double> round_ticks(double begin, double end, int most);

/// A line of HTML with the numbers of an axis that is as wide as the page's drawing, the last with its unit.
std::string tick_line(double begin, double end, std::string_view unit);

/// What such lines need of a page's style.
std::string_view tick_style();

}  // namespace tokamak
