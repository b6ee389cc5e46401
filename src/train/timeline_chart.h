// Bars over time in lanes, as SVG for a page: like a text, the time goes on in the next row where one is full, so that
// short bars can be seen on any screen. Tests: tests/train/timeline_html_test.cpp.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

struct TimelineBar {
  double begin = 0, end = 0;  // seconds
  std::string kind;           // class in the page's style
  std::string title;          // shown where one points at it
};

struct TimelineLane {
  int height = 16;  // pixels
  std::vector<TimelineBar> bars;
};

/// The lanes from 0 to `seconds`, one above the other, in so many rows, each with the times that it shows.
std::string timeline_chart(const std::vector<TimelineLane>& lanes, double seconds, int rows);

}  // namespace tokamak
