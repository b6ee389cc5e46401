#include "compile/balance_blocks.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

std::vector<int64_t> balanced(const std::vector<double>& blocks, int64_t chunks, std::array<double, 2> ends = {}) {
  return balance_blocks({[&] { return blocks; }, [&] { return ends; }}, chunks);
}

TEST(BalanceBlocks, LeavesAnEndWithoutBlocksWhereThatIsFaster) {
  using Borders = std::vector<int64_t>;
  EXPECT_EQ(balanced({1, 1, 1, 1, 1, 6}, 3, {0, 5}), (Borders{0, 3, 6, 6})) << "5 in place of 6";
  EXPECT_EQ(balanced({1, 1, 1, 1, 1, 2}, 3, {0, 1}), (Borders{0, 2, 4, 6})) << "not faster";
  EXPECT_EQ(balanced({6, 1, 1, 1}, 3, {5, 0}), (Borders{0, 0, 2, 4}));
  EXPECT_EQ(balanced({6, 1, 1, 6}, 4, {5, 5}), (Borders{0, 0, 2, 4, 4}));
  EXPECT_EQ(balanced({1, 1, 1}, 4, {0, 0}), (Borders{0, 1, 2, 3, 3})) << "more chunks than blocks";
  EXPECT_EQ(balanced({3, 1, 2}, 4, {2, 1}), (Borders{0, 0, 1, 2, 3})) << "the end that takes longer";
  EXPECT_EQ(balanced({1, 1, 1}, 5, {0, 0}), (Borders{0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(balanced({4}, 3, {1, 1}), (Borders{0, 0, 1, 1}));
}

TEST(BalanceBlocks, MakesTheLongestChunkShort) {
  EXPECT_EQ(balanced({1, 1, 1, 1, 1, 1}, 3), (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(balanced({1, 1, 1, 1, 1, 5}, 2), (std::vector<int64_t>{0, 5, 6}));
  EXPECT_EQ(balanced({3, 1, 1, 1}, 2), (std::vector<int64_t>{0, 1, 4}));
  for (int64_t blocks : {11, 32, 44})  // sums of tenths are rounded, those of ones are not
    for (int64_t chunks : {3, 5, 7})
      EXPECT_EQ(balanced(std::vector<double>(size_t(blocks), 0.1), chunks),
                balanced(std::vector<double>(size_t(blocks), 1), chunks));
}

}  // namespace
}  // namespace tokamak
