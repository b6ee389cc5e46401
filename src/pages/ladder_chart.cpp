// Horizontal bars, one rung a row: measured tokens/s above, predicted below. Letters have columns of their own, so that
// none stands at the end of a bar that is not its own; on a narrow screen they have a line of their own.
#include "pages/html.h"
#include "pages/ladder_html.h"
#include "pages/ticks.h"

#include <fmt/format.h>

#include <algorithm>

namespace tokamak {
namespace {

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

std::string bar(std::string_view kind, double share, const std::string& title) {
  return fmt::format("<i class=\"{}\" style=\"width:{:.2f}%\" title=\"{}\"></i>", kind, 100 * share, title);
}

std::string row(const RungResult& r, double largest) {
  std::string name = fmt::format("<span class=\"name\">{}</span>", escape_html(r.name));
  if (!r.ran()) return name + fmt::format("<span class=\"failure\">{}</span>", escape_html(r.failure));
  std::string measured = bar(r.kept ? "measured" : "measured aside", r.tokens_per_second / largest,
                             fmt::format("{:.0f} tokens/s, {:.2f} ms", r.tokens_per_second, r.ms));
  std::string predicted =
      bar("predicted", predicted_rate(r) / largest, fmt::format("predicted: {:.2f} ms", r.predicted_ms));
  std::string speedup = r.speedup_total > 0 ? fmt::format(", {:.2f}x", r.speedup_total) : "";
  return fmt::format("{}<span class=\"bars\">{}{}</span><span class=\"rate\">{}{}</span>", name, measured, predicted,
                     short_rate(r.tokens_per_second), speedup);
}

}  // namespace

std::string ladder_chart(const std::vector<RungResult>& rungs) {
  std::string text =
      "<figure>\n<figcaption>tokens/s: <span><i class=\"measured\"></i> measured</span> "
      "<span><i class=\"predicted\"></i> predicted</span> "
      "<span><i class=\"measured aside\"></i> measured, not kept</span></figcaption>\n";
  double largest = largest_rate(rungs);
  for (const RungResult& rung : rungs) text += "<div class=\"rung\">" + row(rung, largest) + "</div>\n";
  return text + fmt::format(
                    "<div class=\"rung\"><span class=\"name\"></span><span class=\"bars\">{}</span><span "
                    "class=\"rate\"></span></div>\n</figure>\n",
                    tick_line(0, largest, "tokens/s"));
}

}  // namespace tokamak
