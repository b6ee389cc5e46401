#include "data/token_shard_index.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "data/json_fields.h"
#include "tests/data/small_shards.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TEST(TokenShardIndex, ComesBackAsItWas) {
  SmallShards data({{0, 1, 2}, {3, 4}}, {{9}});
  TokenShardIndex index = read_token_shard_index(data.path());
  EXPECT_EQ(index.vocab_size, 100);
  EXPECT_EQ(index.end_of_text, 99);
  EXPECT_EQ(index.train.tokens(), 5);
  EXPECT_EQ(index.train.max_token(), 4);
  EXPECT_EQ(index.val.shards.size(), 1u);
  EXPECT_EQ(index.val.shards[0].checksum, data.index().val.shards[0].checksum);
}

TEST(TokenShardIndex, KeepsTheSourcesOfASplit) {
  SmallShards data({{0, 1, 2}}, {{9}});
  TokenShardIndex index = data.index();
  index.train.sources = {{"a.txt", 12, "xxh64:0123456789abcdef"}, {"b \"x\".txt", 0, ""}};
  write_token_shard_index(index, data.path());
  TokenShardIndex read = read_token_shard_index(data.path(), IndexSources::kRead);
  EXPECT_EQ(read.train.sources, index.train.sources);
  EXPECT_TRUE(read.val.sources.empty());
  EXPECT_TRUE(read_token_shard_index(data.path()).train.sources.empty()) << "unless they are asked for";
  EXPECT_EQ(read_token_shard_index(data.path()).train.tokens(), 3);
}

TEST(TokenShardIndex, SaysWhatAFolderLacks) {
  TemporaryFolder folder;
  expect_user_error([&] { read_token_shard_index(folder.path()); },
                    {"index.json", folder.path().string(), "tokamak prepare"});
}

TEST(TokenShardIndex, NamesTheDamagedField) {
  SmallShards data({{0, 1, 2}}, {});
  std::string text = read_file(data.path() / kIndexFile);
  auto with = [&](auto change) {
    nlohmann::json root = nlohmann::json::parse(text);
    root.erase(kSeal);
    change(root);
    write_file_atomic(data.path() / kIndexFile, seal_json(root));
    return [&] { read_token_shard_index(data.path()); };
  };
  expect_user_error(with([](auto& root) { root["vocab_size"] = "many"; }), {"index.json", "vocab_size", "many"});
  expect_user_error(with([](auto& root) { root["train"]["shards"][0].erase("tokens"); }), {"`tokens`", "nothing"});
  expect_user_error(with([](auto& root) { root["train"]["shards"][0]["tokens"] = -4; }), {"`tokens`", "-4"});
  expect_user_error(with([](auto& root) { root["version"] = 3; }), {"`version`", "3"});
  write_file_atomic(data.path() / kIndexFile, "{\"format\"");
  expect_user_error([&] { read_token_shard_index(data.path()); }, {"index.json", "a JSON object"});
}

TEST(TokenShardIndex, NoticesEveryChangedNumber) {
  SmallShards data({{0, 1, 2}}, {{3}});
  std::filesystem::path path = data.path() / kIndexFile;
  std::string good = read_file(path);
  for (size_t i = 0; i < good.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(good[i]))) continue;
    std::string bad = good;
    bad[i] = bad[i] == '1' ? '2' : '1';
    write_file_atomic(path, bad);
    EXPECT_THROW(read_token_shard_index(data.path()), UserError) << bad;
  }
}

TEST(TokenShardIndex, OfAnEarlierVersionHasNoChecksum) {
  SmallShards data({{0, 1, 2}}, {{3}});
  EXPECT_TRUE(read_token_shard_index(data.path()).sealed);
  nlohmann::json root = nlohmann::json::parse(read_file(data.path() / kIndexFile));
  root["version"] = 1;
  root.erase("tokenizer");
  root.erase(kSeal);
  write_file_atomic(data.path() / kIndexFile, root.dump());
  TokenShardIndex index = read_token_shard_index(data.path());
  EXPECT_FALSE(index.sealed);
  EXPECT_EQ(index.train.tokens(), 3);
}

TEST(TokenStream, ReadsAcrossShards) {
  SmallShards data({{0, 1, 2}, {3}, {4, 5, 6, 7}}, {});
  TokenStream stream(data.path(), data.index().train);
  EXPECT_EQ(stream.size(), 8);
  for (int64_t begin = 0; begin < 8; ++begin) {
    for (int64_t count = 0; begin + count <= 8; ++count) {
      std::vector<int32_t> got(static_cast<size_t>(count)), expected(static_cast<size_t>(count));
      stream.read(begin, got);
      std::iota(expected.begin(), expected.end(), int32_t(begin));
      EXPECT_EQ(got, expected);
    }
  }
  stream.verify();
}

TEST(TokenStream, RefusesAShardOfOtherLength) {
  SmallShards data({{0, 1, 2}}, {});
  TokenShardIndex index = data.index();
  index.train.shards[0].tokens = 4;
  expect_user_error([&] { TokenStream stream(data.path(), index.train); }, {"train_000000.bin", "4 tokens", "got 3"});
}

TEST(TokenStream, NamesAMissingShard) {
  SmallShards data({{0, 1, 2}}, {});
  std::filesystem::remove(data.path() / "train_000000.bin");
  expect_user_error([&] { TokenStream stream(data.path(), data.index().train); }, {"train_000000.bin", "No such file"});
}

}  // namespace
}  // namespace tokamak
