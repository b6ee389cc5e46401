#include "advise/zero_cut.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

ZeroCut cut(const MatrixSize& size, int64_t data, int64_t context) {
  ZeroCut sizes;
  sizes.add(size, {.data = data, .context = context});
  return sizes;
}

TEST(ZeroCut, CutsWhatAnAxisDivides) {
  EXPECT_EQ(cut({64, 48}, 4, 2).cut(), 64 * 48 / 8);
  EXPECT_EQ(cut({64, 48}, 4, 2).by_both, 64 * 48);
  EXPECT_EQ(cut({10, 48}, 16, 1).cut(), 30) << "along the columns";
  EXPECT_EQ(cut({10, 48}, 7, 2).by_context, 480);
  EXPECT_EQ(cut({10, 7}, 3, 1).whole, 70);
  EXPECT_EQ(cut({10, 7}, 3, 1).divisible(), 0);
  EXPECT_EQ(cut({7, 48, 3}, 48, 1).whole, 7 * 48) << "each block by itself";
  EXPECT_EQ(cut({7, 48, 3}, 16, 1).by_data, 7 * 48);
}

TEST(ZeroCut, AddsUp) {
  ZeroCut both = 2 * cut({64, 48}, 4, 1) + cut({7, 5}, 4, 1);
  EXPECT_EQ(both.all(), 2 * 64 * 48 + 35);
  EXPECT_EQ(both.cut(), 2 * 16 * 48 + 35);
}

}  // namespace
}  // namespace tokamak
