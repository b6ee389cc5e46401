#include "data/int64_log.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using Numbers = std::vector<int64_t>;

Numbers read(Int64Log& log) {
  auto view = log.view();
  return {view.begin(), view.end()};
}

TEST(Int64Log, GoesOnWhereItIsTold) {
  TemporaryFolder folder;
  {
    Int64Log log(folder / "log", 0);
    for (int64_t i = 0; i < 20'000; ++i) log.append(i * i);
    log.sync();
    for (int64_t i = 0; i < 10'000; ++i) log.append(-1);  // some of them reach the disk
  }
  Int64Log log(folder / "log", 20'000);
  EXPECT_EQ(log.size(), 20'000);
  log.append(7);
  Numbers numbers = read(log);
  ASSERT_EQ(numbers.size(), 20'001u);
  EXPECT_EQ(numbers[19'999], 19'999 * 19'999);
  EXPECT_EQ(numbers[20'000], 7);
}

TEST(Int64Log, MayBeEmpty) {
  TemporaryFolder folder;
  Int64Log log(folder / "log", 0);
  EXPECT_TRUE(log.view().empty());
}

TEST(Int64Log, NoticesThatNumbersAreGone) {
  TemporaryFolder folder;
  {
    Int64Log log(folder / "log", 0);
    log.append(1);
    log.sync();
  }
  expect_user_error([&] { Int64Log(folder / "log", 2); }, {"at least 16 bytes", "got 8", "damaged"});
}

}  // namespace
}  // namespace tokamak
