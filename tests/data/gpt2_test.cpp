// GPT-2's own vocabulary against ids made with tiktoken's gpt2 (see the README beside the shared data).
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/sha256.h"
#include "data/tokenizer_files.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

const Tokenizer& gpt2() {
  static const Tokenizer tokenizer = load_tokenizer(shared_data("gpt2"));
  return tokenizer;
}

TEST(Gpt2, HasTheKnownVocabulary) {
  TOKAMAK_NEED_SHARED_DATA("gpt2");
  EXPECT_EQ(gpt2().vocab_size(), 50257);
  EXPECT_EQ(gpt2().end_of_text(), 50256);
  EXPECT_EQ(gpt2().vocabulary().special, std::vector<int32_t>{50256});
}

void expect_vectors(const Tokenizer& tokenizer) {
  std::ifstream file(shared_data("gpt2/vectors.jsonl"));
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    nlohmann::json vector = nlohmann::json::parse(line);
    std::string text = vector["text"];
    std::vector<int32_t> ids = vector["ids"];
    EXPECT_EQ(tokenizer.encode(text), ids) << vector["kind"] << ": " << text.substr(0, 100);
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
  EXPECT_GT(count, 400);
}

TEST(Gpt2, GivesTheIdsOfTiktoken) {
  TOKAMAK_NEED_SHARED_DATA("gpt2");
  expect_vectors(gpt2());
}

TEST(Gpt2, GivesTheSameIdsAfterSavingInEitherForm) {
  TOKAMAK_NEED_SHARED_DATA("gpt2");
  TemporaryFolder folder;
  save_tokenizer(gpt2().vocabulary(), folder.path());
  expect_vectors(load_tokenizer(folder.path()));
  expect_vectors(load_tokenizer(folder / "tokenizer.json"));
  EXPECT_EQ(sha256(read_file(folder / "vocab.bpe")), sha256(read_file(shared_data("gpt2/vocab.bpe"))));
}

struct WholeFile {
  const char* name;
  size_t tokens;
  const char* hash;  // of the ids as little-endian uint16
};

class Gpt2WholeFile : public testing::TestWithParam<WholeFile> {};

TEST_P(Gpt2WholeFile, GivesTheIdsOfTiktoken) {
  TOKAMAK_NEED_SHARED_DATA(GetParam().name);
  std::string text = read_file(shared_data(GetParam().name));
  std::vector<int32_t> ids = gpt2().encode(text);
  EXPECT_EQ(ids.size(), GetParam().tokens);
  std::string bytes;
  for (int32_t id : ids) {
    bytes += char(id & 0xFF);
    bytes += char(id >> 8);
  }
  EXPECT_EQ(sha256(bytes), GetParam().hash);
  EXPECT_EQ(gpt2().decode(ids), text);
}

INSTANTIATE_TEST_SUITE_P(
    Real, Gpt2WholeFile,
    testing::Values(
        WholeFile{"tinyshakespeare.txt", 338025, "25c01b32b32f41897a6359dd222ec114992dc30c357bcafbfe6c56672f76cd31"},
        WholeFile{"wikitext-2/train.txt", 2448382, "6f6e4b8e337e6ca2543efc87c8ab83441094e4f66dc4e9cc806c40c8d2444bf5"},
        WholeFile{"wikitext-2/valid.txt", 258659, "17bc83b54d943c68889ab3b9cb01f17b86fe0216e9738ee39806d2631aac2ef9"},
        WholeFile{"wikitext-2/test.txt", 295877, "33d3634d89dfb45a09164ac72a5e7939b90eeffce49f82cc738dc5dbc652cf3c"}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
      return name;
    });

TEST(Gpt2, RecognisesTheMarkerOnlyWhenAsked) {
  TOKAMAK_NEED_SHARED_DATA("gpt2");
  std::string text = "one<|endoftext|><|endoftext|> two";
  EXPECT_EQ(gpt2().encode(text, true), (std::vector<int32_t>{505, 50256, 50256, 734}));
  std::vector<int32_t> ordinary = gpt2().encode(text);
  EXPECT_EQ(std::count(ordinary.begin(), ordinary.end(), 50256), 0);
  EXPECT_EQ(gpt2().decode(ordinary), text);
}

// A word of a megabyte: quadratic merging would take hours.
TEST(Gpt2, EncodesVeryLongWords) {
  TOKAMAK_NEED_SHARED_DATA("gpt2");
  std::string text;
  for (size_t i = 0; text.size() < 1'000'000; ++i) text += char('a' + i * i % 26);
  EXPECT_EQ(gpt2().decode(gpt2().encode(text)), text);
}

}  // namespace
}  // namespace tokamak
