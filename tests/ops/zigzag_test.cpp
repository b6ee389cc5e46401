#include "ops/zigzag.h"

#include <gtest/gtest.h>

#include <set>

namespace tokamak {
namespace {

TEST(ZigZag, GivesARankAnEarlyAndALateChunk) {
  ZigZag middle{.rows = 4, .ranks = 3, .coordinate = 1};
  int64_t expected[] = {2, 3, 8, 9};
  for (int64_t row = 0; row < 4; ++row) EXPECT_EQ(middle.position(row), expected[row]);
}

TEST(ZigZag, FindsTheRowOfEveryPosition) {
  for (int64_t ranks : {1, 2, 3, 4}) {
    std::set<int64_t> seen;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      ZigZag zigzag{.rows = 6, .ranks = ranks, .coordinate = rank};
      for (int64_t row = 0; row < 6; ++row) {
        int64_t position = zigzag.position(row);
        EXPECT_EQ(zigzag.place(position).rank, rank);
        EXPECT_EQ(zigzag.place(position).row, row);
        seen.insert(position);
      }
    }
    EXPECT_EQ(int64_t(seen.size()), 6 * ranks);
    EXPECT_EQ(*seen.rbegin(), 6 * ranks - 1);
  }
}

}  // namespace
}  // namespace tokamak
