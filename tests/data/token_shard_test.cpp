#include "data/token_shard.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using Ids = std::vector<int32_t>;

class ShardTest : public testing::Test {
 protected:
  TokenShardInfo write(const Ids& ids, int token_bytes = 2) {
    TokenShardWriter writer(path(), int64_t(ids.size()), token_bytes);
    writer.append(ids);
    TokenShardInfo info = writer.finish();
    writer.commit();
    return info;
  }
  std::filesystem::path path() const { return folder_ / "train_000000.bin"; }

  /// Overwrites an int32 of the header.
  void set_header(size_t at, int32_t value) {
    std::string content = read_file(path());
    std::memcpy(content.data() + 4 * at, &value, 4);
    write_file_atomic(path(), content);
  }

  TemporaryFolder folder_;
};

TEST_F(ShardTest, IsWhatLlmcReads) {
  TokenShardInfo info = write({5, 65535, 0});
  EXPECT_EQ(info.file, "train_000000.bin");
  EXPECT_EQ(info.tokens, 3);
  EXPECT_EQ(info.max_token, 65535);
  std::string content = read_file(path());
  ASSERT_EQ(content.size(), 1024u + 6u);
  int32_t header[4];
  std::memcpy(header, content.data(), sizeof header);
  EXPECT_EQ(header[0], 20240520);
  EXPECT_EQ(header[1], 1);
  EXPECT_EQ(header[2], 3);
  EXPECT_EQ(header[3], 0);
  EXPECT_EQ(content.substr(1024), std::string("\x05\x00\xff\xff\x00\x00", 6));
}

TEST_F(ShardTest, GivesBackItsTokens) {
  Ids ids(1'000'000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(i * 7919 % 65536);
  TokenShardInfo info = write(ids);
  TokenShard shard(path());
  Ids read(ids.size());
  shard.read(0, read);
  EXPECT_EQ(read, ids);
  Ids some(5);
  shard.read(999'995, some);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), ids.end() - 5));
  shard.verify(info);
}

TEST_F(ShardTest, HoldsLargeVocabularies) {
  EXPECT_EQ(shard_token_bytes(65536), 2);
  EXPECT_EQ(shard_token_bytes(65537), 4);
  Ids ids = {0, 70000, 2'000'000'000};
  write(ids, 4);
  TokenShard shard(path());
  Ids read(3);
  shard.read(0, read);
  EXPECT_EQ(read, ids);
  EXPECT_EQ(shard.token_bytes(), 4);
}

TEST_F(ShardTest, RefusesAWrongMagic) {
  write({1, 2, 3});
  set_header(0, 1234);
  expect_user_error([&] { TokenShard shard(path()); }, {"train_000000.bin", "20240520", "got 1234", "prepare"});
}

TEST_F(ShardTest, RefusesAnUnknownVersion) {
  write({1, 2, 3});
  set_header(1, 7);
  expect_user_error([&] { TokenShard shard(path()); }, {"version 1", "got 7"});
}

TEST_F(ShardTest, RefusesAFileCutShort) {
  write({1, 2, 3});
  std::filesystem::resize_file(path(), 1024 + 5);
  expect_user_error([&] { TokenShard shard(path()); }, {"expected 1030 bytes", "got 1029 bytes", "cut short"});
  std::filesystem::resize_file(path(), 100);
  expect_user_error([&] { TokenShard shard(path()); }, {"expected a header of 1024 bytes", "100 bytes"});
}

TEST_F(ShardTest, RefusesANegativeCount) {
  write({1, 2, 3});
  set_header(2, -3);
  expect_user_error([&] { TokenShard shard(path()); }, {"-3 tokens", "damaged"});
}

TEST_F(ShardTest, FindsAFlippedBit) {
  TokenShardInfo info = write({1, 2, 3});
  std::string content = read_file(path());
  content[1026] = char(content[1026] ^ 4);
  write_file_atomic(path(), content);
  expect_user_error([&] { TokenShard(path()).verify(info); },
                    {"train_000000.bin", "checksum", info.checksum, "damaged"});
}

TEST_F(ShardTest, TakesNoMoreThanAnnounced) {
  TokenShardWriter writer(path(), 2, 2);
  writer.append(Ids{1, 2, 3});
  EXPECT_THROW(writer.finish(), InternalError);
}

TEST_F(ShardTest, MayStayShorterThanAnnounced) {
  TokenShardInfo exact = write({1, 2, 3});
  std::string content = read_file(path());
  TokenShardWriter writer(path(), 1000, 2);
  writer.append(Ids{1});
  writer.append(Ids{2, 3});
  TokenShardInfo info = writer.finish();
  writer.commit();
  EXPECT_EQ(info.tokens, 3);
  EXPECT_EQ(info.checksum, exact.checksum);
  EXPECT_EQ(read_file(path()), content);
}

TEST_F(ShardTest, AppearsOnlyWhenCommitted) {
  TokenShardWriter writer(path(), 2, 2);
  writer.append(Ids{1, 2});
  writer.finish();
  EXPECT_FALSE(std::filesystem::exists(path()));
  writer.commit();
  EXPECT_EQ(TokenShard(path()).size(), 2);
}

}  // namespace
}  // namespace tokamak
