#include "run/schedule_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "run/learning_rate.h"

namespace tokamak {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

constexpr size_t kLeft = 10;  // columns before the first step's

TEST(ScheduleChart, DrawsEachStepOfAShortRun) {
  OptimizerConfig optimizer{.lr = 1e-3, .min_lr_ratio = 0, .warmup_steps = 5, .schedule = "linear"};
  std::vector<std::string> lines = lines_of(draw_schedule(optimizer, 15));
  EXPECT_EQ(lines[0], "learning rate: linear, warm-up of 5 steps, 1.00e-03 at most, 1.00e-04 at the end");
  ASSERT_EQ(lines.size(), 14u);
  for (int64_t step = 0; step < 15; ++step) {
    auto row = size_t(11 - std::lround(learning_rate(step, optimizer, 15) / 1e-3 * 10));  // the line from above
    ASSERT_GT(lines[row].size(), kLeft + size_t(step)) << step;
    EXPECT_EQ(lines[row][kLeft + size_t(step)], '*') << step << "\n" << draw_schedule(optimizer, 15);
  }
  EXPECT_EQ(lines[1].substr(0, 10), " 1.0e-03 |");
  EXPECT_EQ(lines[6].substr(0, 10), " 5.0e-04 |");
  EXPECT_EQ(lines[11].substr(0, 10), " 0.0e+00 |");
  EXPECT_EQ(lines[12], "         +---------------");
  EXPECT_EQ(lines[13], "          1       step 15");
}

TEST(ScheduleChart, ALongRunFitsATerminal) {
  for (const char* schedule : {"cosine", "linear", "1-sqrt", "wsd", "inverse_sqrt", "constant"})
    for (int64_t steps : {1, 2, 67, 68, 69, 100'000}) {
      OptimizerConfig optimizer{.lr = 6e-4, .warmup_steps = 100, .schedule = schedule};
      for (const std::string& line : lines_of(draw_schedule(optimizer, steps))) {
        EXPECT_LE(line.size(), 100u) << line;
        if (line.find('|') != line.npos) EXPECT_LE(line.size(), 80u) << line;
      }
    }
}

// Every column has a point, and the rate falls nowhere where it should not.
TEST(ScheduleChart, SteepPiecesAreLines) {
  OptimizerConfig optimizer{.lr = 1, .min_lr_ratio = 0, .warmup_steps = 1, .schedule = "wsd", .wsd_decay_share = 0.01};
  std::vector<std::string> lines = lines_of(draw_schedule(optimizer, 1000));
  int last_column = 0;
  for (size_t row = 1; row <= 11; ++row) last_column += lines[row].size() == kLeft + 68 && lines[row].back() == '*';
  EXPECT_GE(last_column, 8) << draw_schedule(optimizer, 1000);
}

TEST(ScheduleChart, ARateOfNothingIsNotDrawn) { EXPECT_EQ(lines_of(draw_schedule({.lr = 0}, 10)).size(), 1u); }

}  // namespace
}  // namespace tokamak
