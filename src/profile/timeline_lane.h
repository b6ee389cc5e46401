// What ran when, as a picture shows it (pages/timeline_chart.h).
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

}  // namespace tokamak
