#include "pages/ticks.h"

#include <fmt/format.h>

#include <cmath>

namespace tokamak {

std::vector<double> round_ticks(double begin, double end, int most) {
  std::vector<double> ticks;
  if (!(begin < end)) return ticks;
  // Of the steps below, one that is too short may be up to 2.5 times shorter than the next.
  double power = std::pow(10, std::floor(std::log10((end - begin) / most)));
  for (double step : {power, 2 * power, 5 * power, 10 * power, 20 * power}) {
    double first = std::ceil(begin / step - 1e-9), last = std::floor(end / step + 1e-9);
    if (last - first + 1 > most) continue;
    for (double i = first; i <= last; ++i) ticks.push_back(i * step + 0.0);  // no -0
    return ticks;
  }
  return ticks;
}

std::string tick_line(double begin, double end, std::string_view unit) {
  constexpr int kMost = 6;  // as many as a phone has room for
  std::vector<double> ticks = round_ticks(begin, end, kMost);
  std::string text = "<div class=\"ticks\">";
  for (size_t i = 0; i < ticks.size(); ++i) {
    double share = (ticks[i] - begin) / (end - begin);
    const char* side = share < 0.04 ? " class=\"first\"" : share > 0.9 ? " class=\"last\"" : "";
    text += fmt::format("<span{} style=\"left:{:.2f}%\">{:.6g}{}{}</span>", side, 100 * share, ticks[i],
                        i + 1 == ticks.size() ? " " : "", i + 1 == ticks.size() ? unit : "");
  }
  return text + "</div>\n";
}

std::string_view tick_style() {
  return R"(.ticks { position: relative; height: 18px; font-size: 11px; color: var(--soft);
         font-variant-numeric: tabular-nums; }
.ticks span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.ticks .first { transform: none; }
.ticks .last { transform: translateX(-100%); }
.grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
)";
}

}  // namespace tokamak
