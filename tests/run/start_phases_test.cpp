#include "run/start_phases.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using std::chrono::milliseconds;

TEST(StartClock, LeavesNoTimeOut) {
  StartClock::Clock::time_point begin{};
  StartClock clock(begin);
  clock.lap("program", begin + milliseconds(150));
  clock.lap("device", begin + milliseconds(470));
  clock.lap("files", begin + milliseconds(471));
  clock.lap("first step", begin + milliseconds(1471));
  EXPECT_EQ(format_start(clock.phases()),
            "start: 1.47 s to the end of the first step: 0.15 program, 0.32 device, 1.00 first step, 0.00 others");
}

TEST(StartClock, GivesWhatTheWorkGives) {
  StartClock clock;
  EXPECT_EQ(clock.time("sum", [] { return 1 + 2; }), 3);
  ASSERT_EQ(clock.phases().size(), 1u);
  EXPECT_EQ(clock.phases()[0].name, "sum");
  EXPECT_GE(clock.phases()[0].seconds, 0);
}

}  // namespace
}  // namespace tokamak
