#include "data/bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "data/byte_alphabet.h"
#include "data/tokenizer.h"
#include "tests/support/expect_error.h"
#include "tests/support/shared_data.h"

namespace tokamak {
namespace {

WordCounts count(std::initializer_list<std::string_view> texts) {
  WordCounts words;
  for (std::string_view text : texts) words.add(text);
  return words;
}

std::vector<std::string> merged_tokens(const Vocabulary& vocabulary) {
  return {vocabulary.tokens.begin() + 256, vocabulary.tokens.end() - 1};
}

TEST(BpeTrainer, MergesTheMostFrequentPairFirst) {
  Vocabulary vocabulary = train_bpe(count({"low low low lower lower newest widest"}), 262);
  // "lo" and "ow" occur 5 times each, and the l has the smaller id; " l" occurs 4 times.
  EXPECT_EQ(merged_tokens(vocabulary).at(0), "lo");
  EXPECT_EQ(merged_tokens(vocabulary).at(1), "low");
  EXPECT_EQ(merged_tokens(vocabulary).at(2), " low");
  EXPECT_EQ(vocabulary.tokens.size(), 262u);
}

TEST(BpeTrainer, PutsBytesFirstAndTheMarkerLast) {
  Vocabulary vocabulary = train_bpe(count({"aaaa aaaa"}), 258);
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(vocabulary.tokens[i], std::string(1, char(byte_alphabet_order()[i])));
  EXPECT_EQ(vocabulary.tokens.back(), kEndOfText);
  EXPECT_EQ(vocabulary.special, std::vector<int32_t>{257});
}

TEST(BpeTrainer, HandlesOverlappingPairs) {
  Vocabulary vocabulary = train_bpe(count({"aaaaa aaaaa aaaaa"}), 300);
  Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(merged_tokens(vocabulary).at(0), "aa");
  EXPECT_EQ(tokenizer.encode(" aaaaa").size(), 1u);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aaaaa aaaaaaa")), "aaaaa aaaaaaa");
}

TEST(BpeTrainer, StopsWhenNothingOccursTwice) {
  EXPECT_EQ(train_bpe(count({"abc"}), 1000).tokens.size(), 257u);
  EXPECT_EQ(train_bpe(count({}), 1000).tokens.size(), 257u);
}

TEST(WordCounts, MergesTheCountsOfParts) {
  WordCounts whole = count({"a b a", " b c"}), parts = count({"a b a"});
  parts.merge(count({" b c"}));
  EXPECT_EQ(parts.counts(), whole.counts());
}

TEST(WordCounts, DropsTheRarestTogether) {
  WordCounts words = count({"a a a b b c c d"});  // " a" twice, "a" once
  words.drop_rare(5);
  EXPECT_EQ(words.counts().size(), 5u);
  words.drop_rare(4);  // two of count 1 are too many
  EXPECT_EQ(words.counts(), (WordCounts::Map{{" a", 2}, {" b", 2}, {" c", 2}}));
  words.drop_rare(2);
  EXPECT_TRUE(words.counts().empty());
}

TEST(BpeTrainer, GivesTheSameVocabularyForAnyOrderOfTheText) {
  Vocabulary one = train_bpe(count({"the cat sat", " on the mat", " that the cat ate"}), 290);
  Vocabulary two = train_bpe(count({" that the cat ate", " on the mat", "the cat sat"}), 290);
  EXPECT_EQ(one.tokens, two.tokens);
}

TEST(BpeTrainer, RefusesAVocabularyTooSmallForTheBytes) {
  expect_user_error([] { train_bpe(WordCounts(), 256); }, {"at least 257", "got 256", "raise the vocabulary size"});
}

// Each merge must be the one that counting everything anew would choose.
TEST(BpeTrainer, AgreesWithCountingAnew) {
  TOKAMAK_NEED_SHARED_DATA("tinyshakespeare.txt");
  std::string text = read_file(shared_data("tinyshakespeare.txt")).substr(0, 20000);
  WordCounts words = count({text});
  Vocabulary vocabulary = train_bpe(words, 400);
  for (size_t done : {size_t(0), size_t(20), size_t(80), vocabulary.merges.size() - 1}) {
    BpeMerges so_far(std::span(vocabulary.merges).first(done));
    std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
    std::array<int32_t, 256> ids;
    for (size_t id = 0; id < 256; ++id) ids[uint8_t(vocabulary.tokens[id][0])] = int32_t(id);
    for (const auto& [word, n] : words.counts()) {
      std::vector<int32_t> symbols;
      for (char c : word) symbols.push_back(ids[uint8_t(c)]);
      so_far.apply(symbols);
      for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs[{symbols[i], symbols[i + 1]}] += n;
    }
    auto best = std::max_element(pairs.begin(), pairs.end(), [](auto& a, auto& b) { return a.second < b.second; });
    EXPECT_EQ(best->first, std::pair(vocabulary.merges[done].left, vocabulary.merges[done].right)) << "merge " << done;
  }
}

}  // namespace
}  // namespace tokamak
