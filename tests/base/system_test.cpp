#include "base/system.h"

#include <gtest/gtest.h>
#include <time.h>

namespace tokamak {
namespace {

TEST(System, KnowsWhenTheProcessBegan) {
  double first = process_seconds();
  EXPECT_GE(first, 0);
  EXPECT_LT(first, 3600);
  timespec while_away{0, 30'000'000};
  ::nanosleep(&while_away, nullptr);
  EXPECT_GT(process_seconds(), first + 0.02);
}

}  // namespace
}  // namespace tokamak
