#include "pages/timeline_chart.h"

#include "pages/html.h"
#include "pages/ticks.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

constexpr double kWidth = 1000;   // of a row, in units of the drawing
constexpr double kGap = 0.5;      // between bars, where they are wide enough
constexpr double kLeast = 0.3;    // width of a bar
constexpr int kLaneDistance = 2;  // pixels

struct Row {
  double begin, end;  // seconds
};

std::string draw_bar(const TimelineBar& bar, const Row& row, int y, int height) {
  double scale = kWidth / (row.end - row.begin);
  double from = (std::max(bar.begin, row.begin) - row.begin) * scale;
  double width = (std::min(bar.end, row.end) - row.begin) * scale - from;
  width = std::max(width > 4 * kGap ? width - kGap : width, kLeast);
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"><title>{}</title></rect>\n", bar.kind,
      from, y, width, height, escape_html(bar.title));
}

std::string draw(const std::vector<TimelineLane>& lanes, const Row& row) {
  std::string bars;
  int y = 0;
  for (const TimelineLane& lane : lanes) {
    bars += fmt::format("<rect class=\"lane\" x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\"></rect>\n", y, kWidth,
                        lane.height);
    for (const TimelineBar& each : lane.bars)
      if (each.begin < row.end && each.end > row.begin) bars += draw_bar(each, row, y, lane.height);
    y += lane.height + kLaneDistance;
  }
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" height=\"{}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"launches over time\">\n{}</svg>\n{}",
      kWidth, y, y, bars, tick_line(row.begin * 1e3, row.end * 1e3, "ms"));
}

}  // namespace

std::string timeline_chart(const std::vector<TimelineLane>& lanes, double seconds, int rows) {
  std::string text;
  for (int i = 0; i < rows && seconds > 0; ++i) text += draw(lanes, {seconds * i / rows, seconds * (i + 1) / rows});
  return text;
}

}  // namespace tokamak
