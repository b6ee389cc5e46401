#include "data/bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/file.h"
#include "base/random.h"
#include "data/byte_alphabet.h"
#include "data/pretokenizer.h"
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

/// The definition: count all neighbours, join those that are the most frequent, begin again.
std::vector<std::pair<int32_t, int32_t>> slow_merges(const WordCounts& words, size_t most) {
  std::array<int32_t, 256> ids;
  for (size_t id = 0; id < 256; ++id) ids[byte_alphabet_order()[id]] = int32_t(id);
  std::vector<std::pair<std::vector<int32_t>, int64_t>> all;
  for (const auto& [word, count] : words.counts()) {
    all.push_back({{}, count});
    for (char c : word) all.back().first.push_back(ids[uint8_t(c)]);
  }
  std::vector<std::pair<int32_t, int32_t>> merges;
  for (int32_t result = 256; merges.size() < most; ++result) {
    std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
    for (const auto& [symbols, count] : all)
      for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs[{symbols[i], symbols[i + 1]}] += count;
    auto best = std::ranges::max_element(pairs, {}, [](const auto& pair) { return pair.second; });
    if (best == pairs.end() || best->second < 2) break;
    merges.push_back(best->first);
    for (auto& [symbols, count] : all)
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (std::pair(symbols[i], symbols[i + 1]) != merges.back()) continue;
        symbols[i] = result;
        symbols.erase(symbols.begin() + ptrdiff_t(i) + 1);
      }
  }
  return merges;
}

TEST(BpeTrainer, AgreesWithItsDefinition) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    WordCounts words;
    for (uint64_t i = 0; i < 30; ++i) {  // runs of two or three letters, in which pairs overlap
      std::string word;
      for (uint64_t at = 0; at < 1 + i % 14; ++at) word += char('a' + philox4x32(seed, i, at)[0] % (2 + seed % 2));
      words.add(word);
    }
    std::vector<std::pair<int32_t, int32_t>> merges;
    for (const Merge& merge : train_bpe(words, 357).merges) merges.emplace_back(merge.left, merge.right);
    ASSERT_EQ(merges, slow_merges(words, 100)) << seed;
  }
}

TEST(BpeTrainer, CountsWordsAsTheyAreCut) {
  std::string text;
  for (uint64_t i = 0; i < 60000; ++i) {
    uint32_t bits = philox4x32(i, 7)[0];
    text += std::string(" ") + char('a' + bits % 26) + char('a' + (bits >> 8) % 26) +
            std::string((bits >> 16) % 9 * 2, 'x');
    if (bits >> 24 == 0) text += " \n\u00e9t\u00e9 123'll..";
  }
  WordCounts::Map slow;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = pretokenizer_info(Pretokenizer::kGpt2).word_end(text, at);
    ++slow[text.substr(at, end - at)];
  }
  EXPECT_EQ(count({text}).counts(), slow);
  EXPECT_GT(slow.size(), 5000u);
}

// Counted in parts by several threads, whichever ends first.
TEST(BpeTrainer, GivesTheSameVocabularyForAnyNumberOfThreads) {
  TOKAMAK_NEED_SHARED_DATA("tinyshakespeare.txt");
  std::string text = read_file(shared_data("tinyshakespeare.txt")).substr(0, 300'000);
  Vocabulary whole = train_bpe(count({text}), 1000);
  for (size_t threads : {2, 3, 7}) {
    std::vector<WordCounts> parts(threads);
    std::vector<std::thread> running;
    for (size_t i = 0, begin = 0; i < threads; ++i) {
      size_t end = i + 1 < threads ? text.find("e th", text.size() * (i + 1) / threads) + 1 : text.size();
      running.emplace_back([&, i, begin, end] { parts[i].add(std::string_view(text).substr(begin, end - begin)); });
      begin = end;
    }
    for (std::thread& thread : running) thread.join();
    for (size_t i = threads - 1; i > 0; --i) parts[0].merge(parts[i]);
    EXPECT_EQ(train_bpe(parts[0], 1000).tokens, whole.tokens) << threads;
  }
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
