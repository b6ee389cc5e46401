// Bars over time in lanes, as SVG for a page: like a text, the time goes on in the next row where one is full, so that
// short bars can be seen on any screen. Tests: tests/pages/timeline_html_test.cpp.
#pragma once

#include "profile/timeline_lane.h"

#include <string>
#include <vector>

namespace tokamak {

/// The lanes from 0 to `seconds`, one above the other, in so many rows, each with an axis below.
std::string timeline_chart(const std::vector<TimelineLane>& lanes, double seconds, int rows);

}  // namespace tokamak
