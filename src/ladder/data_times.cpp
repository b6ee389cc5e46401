#include "ladder/data_times.h"

#include "run/progress.h"

#include <fmt/format.h>

namespace tokamak {

double tokens_in_short_run(const RungResult& rung) { return rung.tokens_per_second * kShortRun; }

double epoch_hours(const RungResult& rung, int64_t epoch_tokens) {
  return double(epoch_tokens) / rung.tokens_per_second / 3600;
}

std::string format_data_times(std::span<const RungResult> rungs, int64_t epoch_tokens) {
  std::string epoch = epoch_tokens > 0 ? fmt::format(" {:>8}", "epoch h") : "";
  std::string text = fmt::format("{:<25} {:>8} {:>10}{}\n", "tokens seen", "tokens/s", "in 5 min", epoch);
  for (const RungResult& rung : rungs) {
    if (!rung.ran()) continue;
    text += fmt::format("{:<25} {:>8.0f} {:>10}", rung.name, rung.tokens_per_second,
                        format_count(tokens_in_short_run(rung)));
    if (epoch_tokens > 0) text += fmt::format(" {:>8.3g}", epoch_hours(rung, epoch_tokens));
    text += "\n";
  }
  if (epoch_tokens > 0) text += fmt::format("epoch h: hours of {} tokens\n", format_count(double(epoch_tokens)));
  return text;
}

}  // namespace tokamak
