// Horizontal bars, one rung a row: measured tokens/s above, predicted below.
#include "train/ladder_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr double kWidth = 960, kLabels = 200, kBars = 620;
constexpr double kRow = 38, kTop = 44, kMeasured = 15, kPredicted = 6;

// Also on its own, outside a page: hence no variables, which not every viewer of SVG knows.
constexpr std::string_view kStyle = R"(<style>
.chart { font: 13px system-ui, sans-serif; fill: #1f2328; }
.chart .grid { stroke: #d0d7de; stroke-width: 1; }
.chart .axis, .chart .failure { fill: #59636e; }
.chart .measured { fill: #0969da; }
.chart .measured.aside { fill: #7d8fa3; }
.chart .predicted { fill: #d4790a; }
@media (prefers-color-scheme: dark) {
  .chart { fill: #e6edf3; }
  .chart .grid { stroke: #3d444d; }
  .chart .axis, .chart .failure { fill: #9198a1; }
  .chart .measured { fill: #4493f8; }
  .chart .measured.aside { fill: #8b98a8; }
  .chart .predicted { fill: #e3a04a; }
}
</style>
)";

// 462118 as "462k", 14415 as "14.4k".
std::string short_rate(double value) {
  if (value >= 999.5e3) return fmt::format("{:.2f}M", value * 1e-6);
  if (value >= 99.95e3) return fmt::format("{:.0f}k", value * 1e-3);
  if (value >= 999.5) return fmt::format("{:.1f}k", value * 1e-3);
  return fmt::format("{:.0f}", value);
}

double predicted_rate(const RungResult& r) { return r.tokens_per_second * r.ms / r.predicted_ms; }

double largest_rate(const std::vector<RungResult>& rungs) {
  double largest = 0;
  for (const RungResult& rung : rungs)
    if (rung.ran()) largest = std::max({largest, rung.tokens_per_second, predicted_rate(rung)});
  return largest > 0 ? largest : 1;
}

// 1, 2 or 5 times a power of ten, so that at most six of them make the axis.
double tick_of(double largest) {
  double power = std::pow(10, std::floor(std::log10(largest / 6)));
  for (double factor : {1.0, 2.0, 5.0})
    if (largest / (factor * power) <= 6) return factor * power;
  return 10 * power;
}

std::string axis(double largest, double bottom) {
  std::string text;
  double tick = tick_of(largest);
  for (int i = 0; i * tick <= largest * 1.0001; ++i) {
    double x = kLabels + kBars * i * tick / largest;
    text += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>\n", x, kTop - 6,
                        bottom);
    text += fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x, bottom + 16,
                        short_rate(i * tick));
  }
  return text;
}

std::string legend() {
  return fmt::format(
      "<text x=\"{0}\" y=\"20\">tokens/s</text>\n"
      "<text class=\"legend\" x=\"{1}\" y=\"20\">measured</text><circle class=\"measured\" cx=\"{2}\" cy=\"16\" "
      "r=\"5\"/>\n"
      "<text class=\"legend\" x=\"{3}\" y=\"20\">predicted</text><circle class=\"predicted\" cx=\"{4}\" cy=\"16\" "
      "r=\"5\"/>\n"
      "<text class=\"legend\" x=\"{5}\" y=\"20\">measured, not kept</text>"
      "<circle class=\"measured aside\" cx=\"{6}\" cy=\"16\" r=\"5\"/>\n",
      kLabels, kLabels + 110, kLabels + 98, kLabels + 210, kLabels + 198, kLabels + 310, kLabels + 298);
}

std::string row(const RungResult& r, double y, double largest) {
  std::string text = fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLabels - 10, y + 15,
                                 escape_html(r.name));
  if (!r.ran())
    return text + fmt::format("<text class=\"failure\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", kLabels + 6, y + 15,
                              escape_html(r.failure));
  double measured = kBars * r.tokens_per_second / largest, predicted = kBars * predicted_rate(r) / largest;
  text += fmt::format(
      "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"><title>{}: {:.0f} tokens/s, {:.2f} "
      "ms</title></rect>\n",
      r.kept ? "measured" : "measured aside", kLabels, y + 2, measured, kMeasured, escape_html(r.name),
      r.tokens_per_second, r.ms);
  text += fmt::format(
      "<rect class=\"predicted\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"><title>predicted: {:.2f} "
      "ms</title></rect>\n",
      kLabels, y + 2 + kMeasured + 2, predicted, kPredicted, r.predicted_ms);
  text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}, {:.2f}x</text>\n", kLabels + measured + 6, y + 14,
                      short_rate(r.tokens_per_second), r.speedup_total);
  return text;
}

}  // namespace

std::string ladder_chart(const std::vector<RungResult>& rungs) {
  double bottom = kTop + kRow * double(rungs.size()), largest = largest_rate(rungs);
  std::string text = fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"tokens per second of every rung\">\n{}",
      kWidth, bottom + 24, kStyle);
  text += legend() + axis(largest, bottom);
  for (size_t i = 0; i < rungs.size(); ++i) text += row(rungs[i], kTop + kRow * double(i), largest);
  return text + "</svg>\n";
}

}  // namespace tokamak
