// How many kinds of values are computed again, by what is needed with so many.
#include "advise/compose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tokamak {
namespace {

Recomputed least(double budget, std::vector<double> needed) {
  return least_recomputed(budget, [=](int64_t kinds) { return needed[std::min(size_t(kinds), needed.size() - 1)]; });
}

TEST(LeastRecomputed, IsBetweenTheLastTooMuchAndTheFirstThatFits) {
  Recomputed some = least(85, {100, 90, 80, 70, 60});
  EXPECT_EQ(some.kinds, 1);
  EXPECT_EQ(some.more, 2);
  EXPECT_DOUBLE_EQ(some.share, 0.5);
}

// A kind that takes more memory than it frees, until the next one follows, is no beginning.
TEST(LeastRecomputed, BeginsBeforeAKindThatTakesMoreThanItFrees) {
  Recomputed some = least(80, {100, 101, 102, 60, 50});
  EXPECT_EQ(some.kinds, 0);
  EXPECT_EQ(some.more, 3);
  EXPECT_DOUBLE_EQ(some.share, 0.5);
}

TEST(LeastRecomputed, IsAllWhereThatIsTooMuch) {
  Recomputed all = least(10, {100, 90, 80});
  EXPECT_EQ(all.kinds, all.more);
  EXPECT_EQ(all.share, 0);
}

}  // namespace
}  // namespace tokamak
