#include "run/slow_saves.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(SlowSaves, AreToldOnceWithWhatHelps) {
  SlowSaves saves;
  std::string told = saves.note({.step = 200, .seconds = 3.25, .save = 20, .steps = 16.75});
  EXPECT_EQ(told,
            "steps stood still for 3.2 s, as the save of step 200 took 20.0 s and the next one was due after 16.8 s: a "
            "larger train.checkpoint_every, or train.out on a faster disk with train.archive on this one, avoids that");
  EXPECT_EQ(saves.note({.step = 300, .seconds = 3.25, .save = 20, .steps = 16.75}), "");
}

TEST(SlowSaves, ShortWaitsAreNotTold) {
  SlowSaves saves;
  EXPECT_EQ(saves.note({.step = 1, .seconds = 0.9, .save = 1, .steps = 0.1}), "");
  EXPECT_EQ(saves.note({.step = 2, .seconds = 1.5, .save = 302, .steps = 300}), "");
  EXPECT_NE(saves.note({.step = 3, .seconds = 1.5, .save = 3, .steps = 1.5}), "");
}

}  // namespace
}  // namespace tokamak
