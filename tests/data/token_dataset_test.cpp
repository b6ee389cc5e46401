#include "data/token_dataset.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/data/small_corpus.h"
#include "tests/data/small_shards.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"

namespace tokamak {
namespace {

std::vector<int32_t> counting(int32_t from, int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

/// 0..90 in three shards.
class TokenDatasetTest : public testing::Test {
 protected:
  std::unique_ptr<Dataset> open(int64_t context) {
    return open_prepared(data_.path(), data_.index(), data_.index().train, context);
  }
  std::string shard(int number) const {
    return (data_.path() / data_.index().train.shards[size_t(number)].file).string();
  }

  SmallShards data_{{counting(0, 40), counting(40, 1), counting(41, 50)}, {counting(0, 4)}};
};

TEST_F(TokenDatasetTest, WindowsOverlapByOneToken) {
  auto dataset = open(6);
  EXPECT_EQ(dataset->windows(), 15);
  auto reader = dataset->reader();
  for (int32_t window = 14; window >= 0; --window) {
    std::vector<int32_t> tokens(7);
    reader->read(window, tokens);
    EXPECT_EQ(tokens, counting(6 * window, 7));
  }
}

TEST_F(TokenDatasetTest, PlacesGoOverFromShardToShard) {
  auto reader = open(6)->reader();
  EXPECT_EQ(reader->place(0), (std::vector<FileRange>{{shard(0), 0, 7}}));
  EXPECT_EQ(reader->place(6), (std::vector<FileRange>{{shard(0), 36, 4}, {shard(1), 0, 1}, {shard(2), 0, 2}}));
  EXPECT_EQ(reader->place(14), (std::vector<FileRange>{{shard(2), 43, 7}}));
}

TEST_F(TokenDatasetTest, KnowsWhatTheIndexKnows) {
  auto dataset = open(6);
  EXPECT_EQ(std::string(dataset->kind()), "prepared");
  EXPECT_EQ(dataset->facts().tokens, 91);
  EXPECT_EQ(dataset->facts().vocab_size, 100);
  EXPECT_EQ(dataset->facts().max_token, 90);
  EXPECT_EQ(dataset->facts().end_of_text, 99);
  std::vector<FileFingerprint> files = dataset->fingerprints();
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[2].path, shard(2));
  EXPECT_EQ(files[2].bytes, 1024 + 2 * 50);
}

TEST_F(TokenDatasetTest, SaysHowManyTokensAreMissing) {
  auto val = [&](int64_t context) { return open_prepared(data_.path(), data_.index(), data_.index().val, context); };
  expect_user_error([&] { val(4); }, {"at least 5 tokens", "got 4", "lower model.context to 3"});
  EXPECT_EQ(val(3)->windows(), 1);
  try {
    make_token_dataset("tokens/*.bin", std::make_shared<CountingTokens>(0, 1), 9);
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find("lower model.context"), std::string::npos) << error.what();
  }
}

TEST_F(TokenDatasetTest, ADamagedShardIsFoundOnceItIsUsed) {
  std::string bytes = read_file(shard(2));
  bytes[1024] ^= 2;  // another token of the vocabulary
  write_file_quickly(shard(2), bytes);
  auto unverified = open(6);
  auto verified = open_prepared(data_.path(), data_.index(), data_.index().train, 6, true);
  std::vector<int32_t> tokens(7);
  for (Dataset* dataset : {unverified.get(), verified.get()}) {
    dataset->reader()->read(5, tokens);
    EXPECT_NO_THROW(dataset->verify_used());
    dataset->reader()->read(6, tokens);  // reaches into the third
  }
  EXPECT_NO_THROW(unverified->verify_used());
  for (int i = 0; i < 2; ++i)
    expect_user_error([&] { verified->verify_used(); }, {"[shard]", shard(2), "checksum", "damaged"});
  expect_user_error([&] { verified->reader()->read(0, tokens); }, {shard(2)});
}

TEST_F(TokenDatasetTest, StaysWhatItWasWhenItsFilesAreReplaced) {
  auto dataset = open_prepared(data_.path(), data_.index(), data_.index().train, 6, true);
  std::vector<FileFingerprint> files = dataset->fingerprints();
  for (int i = 0; i < 3; ++i) write_file_atomic(shard(i), "other data");
  std::vector<int32_t> tokens(91);
  dataset->reader()->read(0, tokens);
  EXPECT_EQ(tokens, counting(0, 91));
  EXPECT_NO_THROW(dataset->verify_used());
  EXPECT_EQ(dataset->fingerprints(), files);
}

TEST_F(TokenDatasetTest, FilesOfTokensTellNoVocabulary) {
  auto dataset = make_token_dataset("tokens/*.bin", std::make_shared<CountingTokens>(0, 100), 9);
  EXPECT_EQ(std::string(dataset->kind()), "tokens");
  EXPECT_EQ(dataset->windows(), 11);
  EXPECT_EQ(dataset->facts().vocab_size, 0);
  EXPECT_FALSE(dataset->facts().end_of_text);
  EXPECT_EQ(dataset->reader()->place(10), (std::vector<FileRange>{{"memory", 90, 10}}));
}

}  // namespace
}  // namespace tokamak
