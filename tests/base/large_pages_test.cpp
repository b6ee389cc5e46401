#include "base/large_pages.h"

#include <gtest/gtest.h>

#include <limits>

namespace tokamak {
namespace {

TEST(LargePages, AreZeroAndMayBeWritten) {
  constexpr int64_t kBytes = (int64_t(5) << 20) + 3;
  LargePages pages(kBytes);
  ASSERT_TRUE(pages.data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pages.data()) % (1 << 21), 0u);
  pages.touch(0, kBytes);
  for (int64_t at : {int64_t(0), kBytes / 2, kBytes - 1}) {
    EXPECT_EQ(pages.data()[at], std::byte{0});
    pages.data()[at] = std::byte{7};
    EXPECT_EQ(pages.data()[at], std::byte{7});
  }
}

TEST(LargePages, SayWhenThereAreNotAsMany) {
  EXPECT_FALSE(LargePages(std::numeric_limits<int64_t>::max() / 2).data());
  EXPECT_TRUE(LargePages(0).data());
}

}  // namespace
}  // namespace tokamak
