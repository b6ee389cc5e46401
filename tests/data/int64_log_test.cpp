#include "data/int64_log.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
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
  Int64LogState state;
  {
    Int64Log log(folder / "log");
    for (int64_t i = 0; i < 20'000; ++i) log.append(i * i);
    state = log.sync();
    for (int64_t i = 0; i < 10'000; ++i) log.append(-1);  // some of them reach the disk
  }
  Int64Log log(folder / "log", state);
  EXPECT_EQ(log.size(), 20'000);
  log.append(7);
  Numbers numbers = read(log);
  ASSERT_EQ(numbers.size(), 20'001u);
  EXPECT_EQ(numbers[19'999], 19'999 * 19'999);
  EXPECT_EQ(numbers[20'000], 7);
  Int64LogState more = log.sync();
  EXPECT_EQ(Int64Log(folder / "log", more).size(), 20'001);  // its checksum went on from the earlier one
}

TEST(Int64Log, MayBeEmpty) {
  TemporaryFolder folder;
  Int64Log log(folder / "log");
  EXPECT_TRUE(log.view().empty());
}

TEST(Int64Log, NoticesThatNumbersAreGone) {
  TemporaryFolder folder;
  {
    Int64Log log(folder / "log");
    log.append(1);
    log.sync();
  }
  expect_user_error([&] { Int64Log(folder / "log", {2}); }, {"at least 16 bytes", "got 8", "damaged"});
}

TEST(Int64Log, NoticesThatNumbersAreOthers) {
  TemporaryFolder folder;
  Int64LogState state;
  {
    Int64Log log(folder / "log");
    for (int64_t i = 0; i < 10'000; ++i) log.append(i);
    state = log.sync();
  }
  std::string bytes = read_file(folder / "log");
  bytes[70'000] ^= 1;
  write_file_quickly(folder / "log", bytes);
  expect_user_error([&] { Int64Log(folder / "log", state); }, {"log", "checksum", "damaged"});
}

}  // namespace
}  // namespace tokamak
