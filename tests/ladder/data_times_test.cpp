#include "ladder/data_times.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

RungResult rung(std::string name, double tokens_per_second) {
  RungResult result;
  result.name = std::move(name);
  result.tokens_per_second = tokens_per_second;
  return result;
}

TEST(DataTimes, FollowFromTheRate) {
  RungResult fast = rung("fast", 250e3);
  EXPECT_DOUBLE_EQ(tokens_in_short_run(fast), 75e6);
  EXPECT_DOUBLE_EQ(epoch_hours(fast, 9'000'000'000), 10);
}

TEST(DataTimes, ATableOfTheRungsThatRan) {
  std::vector<RungResult> rungs = {rung("fast", 250e3), rung("failed", 1)};
  rungs[1].failure = "does not fit";
  EXPECT_EQ(format_data_times(rungs, 9'000'000'000),
            "tokens seen               tokens/s   in 5 min  epoch h\n"
            "fast                        250000      75.0M       10\n"
            "epoch h: hours of 9.0G tokens\n");
  EXPECT_EQ(format_data_times(rungs, 0),
            "tokens seen               tokens/s   in 5 min\n"
            "fast                        250000      75.0M\n");
}

}  // namespace
}  // namespace tokamak
