#include "pages/ticks.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Ticks, AreRoundAndInside) {
  EXPECT_EQ(round_ticks(0, 100, 6), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(round_ticks(3, 7.1, 6), (std::vector<double>{3, 4, 5, 6, 7}));
  EXPECT_EQ(round_ticks(1, 1, 6), std::vector<double>{});
  for (double end : {0.003, 0.7, 1.0, 12.5, 99.0, 4567.0}) {
    std::vector<double> ticks = round_ticks(0.21 * end, end, 6);
    EXPECT_GE(ticks.size(), 2u) << end;
    EXPECT_LE(ticks.size(), 6u) << end;
    EXPECT_GE(ticks.front(), 0.21 * end * (1 - 1e-9));
    EXPECT_LE(ticks.back(), end * (1 + 1e-9));
  }
}

TEST(Ticks, StandWhereTheyBelong) {
  std::string line = tick_line(10, 20, "ms");
  EXPECT_NE(line.find("<span class=\"first\" style=\"left:0.00%\">10</span>"), line.npos) << line;
  EXPECT_EQ(tick_line(0, 3, "ms").find("-0"), line.npos);
  EXPECT_NE(line.find("<span style=\"left:40.00%\">14</span>"), line.npos) << line;
  EXPECT_NE(line.find("left:100.00%\">20 ms</span>"), line.npos) << line;
}

}  // namespace
}  // namespace tokamak
