#include "run/schedule_chart.h"

#include "run/learning_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tokamak {
namespace {

constexpr int kRows = 11;  // of which the lowest is 0
constexpr int64_t kColumns = 68;

std::string in_words(const OptimizerConfig& optimizer, int64_t steps) {
  std::string text = fmt::format("learning rate: {}", optimizer.schedule);
  if (optimizer.warmup_steps > 0) text += fmt::format(", warm-up of {} steps", optimizer.warmup_steps);
  return text +
         fmt::format(", {:.2e} at most, {:.2e} at the end", optimizer.lr, learning_rate(steps - 1, optimizer, steps));
}

// The rate at each column's last step.
std::vector<double> rates_of(const OptimizerConfig& optimizer, int64_t steps) {
  int64_t columns = std::min(kColumns, steps);
  std::vector<double> rates;
  for (int64_t c = 1; c <= columns; ++c) rates.push_back(learning_rate(c * steps / columns - 1, optimizer, steps));
  return rates;
}

}  // namespace

std::string draw_schedule(const OptimizerConfig& optimizer, int64_t steps) {
  std::string text = in_words(optimizer, steps) + "\n";
  std::vector<double> rates = rates_of(optimizer, steps);
  double highest = *std::ranges::max_element(rates);
  if (highest == 0) return text;
  auto row_of = [&](double rate) { return int(std::lround(rate / highest * (kRows - 1))); };
  std::vector<std::string> rows(kRows, std::string(rates.size(), ' '));
  for (size_t c = 0; c < rates.size(); ++c) {
    int here = row_of(rates[c]), before = c > 0 ? row_of(rates[c - 1]) : here;
    rows[size_t(here)][c] = '*';
    // A steep piece is a line, too.
    for (int row = std::min(here, before) + 1; row < std::max(here, before); ++row) rows[size_t(row)][c] = '*';
  }
  for (int row = kRows - 1; row >= 0; --row) {
    bool is_labelled = row % ((kRows - 1) / 2) == 0;
    std::string label = is_labelled ? fmt::format("{:.1e}", highest * row / (kRows - 1)) : "";
    std::string line = rows[size_t(row)];
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{:>8} |{}\n", label, line);
  }
  std::string last = fmt::format("step {}", steps);
  size_t width = std::max(rates.size(), last.size() + 3);
  return text + fmt::format("{:>8} +{}\n{:>8}  1{:>{}}\n", "", std::string(rates.size(), '-'), "", last, width - 1);
}

}  // namespace tokamak
