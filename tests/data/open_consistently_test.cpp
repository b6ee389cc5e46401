#include "data/open_consistently.h"

#include <gtest/gtest.h>

#include "config/data_config.h"
#include "data/prepare.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

class OpenConsistentlyTest : public testing::Test {
 protected:
  void SetUp() override { prepare_anew(); }

  /// Other data each time.
  void prepare_anew() {
    ++generation_;
    write_file_quickly(folder_ / "a.txt", std::string(size_t(1000 + 100 * generation_), 'a'));
    prepare({.inputs = {(folder_ / "a.txt").string()}, .out = folder_ / "data", .vocab_size = 257});
  }

  DataConfig config() {
    DataConfig config;
    config.path = {(folder_ / "data").string()};
    return config;
  }

  /// The tokens of both splits, with `between` when the first is read.
  std::pair<int64_t, int64_t> open(const std::function<void()>& between) {
    return open_consistently(config(), [&] {
      int64_t train = read_token_shard_index(folder_ / "data").train.tokens();
      between();
      return std::pair(train, read_token_shard_index(folder_ / "data").val.tokens());
    });
  }

  MemoryFolder folder_;
  int generation_ = 0;
};

TEST_F(OpenConsistentlyTest, GivesBothPartsOfOneDataSet) {
  int times = 0;
  auto [train, val] = open([&] {
    if (++times < 3) prepare_anew();
  });
  EXPECT_EQ(times, 3);
  TokenShardIndex index = read_token_shard_index(folder_ / "data");
  EXPECT_EQ(train, index.train.tokens());
  EXPECT_EQ(val, index.val.tokens());
}

TEST_F(OpenConsistentlyTest, TriesAgainAfterAnErrorOfTheMoment) {
  int times = 0;
  open([&] {
    if (++times > 1) return;
    prepare_anew();
    user_error("a shard that is gone");
  });
  EXPECT_EQ(times, 2);
  expect_user_error([&] { open([] { user_error("a shard that is gone"); }); }, {"a shard that is gone"});
}

TEST_F(OpenConsistentlyTest, GivesUpInTheEnd) {
  expect_user_error([&] { open([&] { prepare_anew(); }); }, {"replaced 10 times", "wait until"});
}

}  // namespace
}  // namespace tokamak
