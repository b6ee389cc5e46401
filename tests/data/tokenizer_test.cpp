#include "data/tokenizer.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "data/bpe.h"
#include "data/byte_alphabet.h"
#include "tests/data/small_vocabulary.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

using Ids = std::vector<int32_t>;

TEST(Tokenizer, MergesByRankLeftmostFirst) {
  // aa -> 256, ab -> 257, aaab -> 258 as (aa, ab)
  Tokenizer tokenizer(small_vocabulary({{"a", "a"}, {"a", "b"}, {"aa", "ab"}}));
  int32_t a = 'a', b = 'b';
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{256, a}));
  EXPECT_EQ(tokenizer.encode("aab"), (Ids{256, b}));
  EXPECT_EQ(tokenizer.encode("aaab"), (Ids{258}));
  EXPECT_EQ(tokenizer.encode("baab"), (Ids{b, 256, b}));
}

TEST(Tokenizer, DoesNotMergeAcrossWords) {
  Tokenizer tokenizer(small_vocabulary({{" ", "a"}, {"a", "b"}}));
  EXPECT_EQ(tokenizer.encode("a1b ab"), (Ids{'a', '1', 'b', 256, 'b'}));
}

TEST(Tokenizer, EmptyTextHasNoIds) {
  Tokenizer tokenizer(small_vocabulary({}));
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_EQ(tokenizer.decode({}), "");
}

TEST(Tokenizer, GivesBackAnyBytes) {
  Tokenizer tokenizer(small_vocabulary({{"a", "b"}, {"\x80", "\x81"}, {" ", "\xff"}, {"ab", "ab"}}));
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string text(seed * 3, '\0');
    for (size_t i = 0; i < text.size(); ++i) {
      uint32_t bits = philox4x32(seed, i)[0];
      // A small alphabet now and then, so that merges and runs happen.
      text[i] = seed % 2 ? char(bits) : "ab \x80\x81\xff\n'"[bits % 8];
    }
    for (bool allow_special : {false, true})
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, allow_special)), text) << "seed " << seed;
  }
}

TEST(Tokenizer, AnEncoderGivesTheSameIdsEveryTime) {
  Tokenizer tokenizer(small_vocabulary({{"a", "b"}, {"ab", "a"}, {" ", "a"}}));
  Encoder encoder(tokenizer, 64);
  for (int round = 0; round < 3; ++round) {
    for (std::string text : {"ab aba abab", "abababababababababababa abab", " a b ab"}) {
      Ids ids;
      encoder.append(text, ids);
      EXPECT_EQ(ids, tokenizer.encode(text)) << text;
    }
  }
}

// Words that drive each other out of a small cache, with few ids and many, and come back.
TEST(Tokenizer, AnEncoderForgetsAndFindsAgain) {
  Tokenizer tokenizer(small_vocabulary({{"a", "b"}, {" ", "a"}, {"c", "d"}, {"cd", "cd"}}));
  Encoder encoder(tokenizer, 1);
  for (uint64_t round = 0; round < 300; ++round) {
    std::string word(1 + philox4x32(round, 1)[0] % 20, ' ');
    for (size_t i = 0; i < word.size(); ++i) word[i] = char('a' + philox4x32(round % 60, i, 2)[0] % 4);
    Ids ids, expected;
    encoder.append(word, ids);
    for (char c : word) expected.push_back(c);
    BpeMerges(tokenizer.vocabulary().merges).apply(expected);
    ASSERT_EQ(ids, expected) << word;
  }
}

TEST(Tokenizer, TakesTheLongestMarkerOfThoseThatStartFirst) {
  Vocabulary vocabulary = small_vocabulary({});
  int32_t end = int32_t(vocabulary.tokens.size()) - 1;
  for (std::string marker : {"<x>", "<x><y>"}) {
    vocabulary.special.push_back(int32_t(vocabulary.tokens.size()));
    vocabulary.tokens.push_back(marker);
  }
  add_markers(vocabulary);
  Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.encode("a<x><y><x><|endoftext|>", true), (Ids{'a', end + 2, end + 1, end}));
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  Tokenizer tokenizer(small_vocabulary({}));
  expect_user_error([&] { tokenizer.decode(Ids{0, 257}); }, {"expected ids from 0 to 256", "got 257"});
  expect_user_error([&] { tokenizer.decode(Ids{-1}); }, {"got -1"});
}

TEST(Tokenizer, RefusesAVocabularyWithoutAllBytes) {
  Vocabulary vocabulary = small_vocabulary({});
  vocabulary.tokens['a'] = "aa";
  expect_user_error([&] { Tokenizer tokenizer(vocabulary); }, {"256 bytes", "byte 97"});
}

// A token that the merges never make of its bytes: (ab, c) is not reached, as (b, c) goes first.
TEST(Tokenizer, MergesDecideWhereWholeWordsDoNot) {
  Vocabulary vocabulary = small_vocabulary({{"b", "c"}, {"a", "b"}, {"ab", "c"}});
  EXPECT_EQ(Tokenizer(vocabulary).encode("abc abc"), (Ids{'a', 256, ' ', 'a', 256}));
  vocabulary.whole_words = true;
  EXPECT_EQ(Tokenizer(vocabulary).encode("abc abc"), (Ids{258, ' ', 'a', 256}));
}

TEST(Tokenizer, KnowsLlama3sEndOfText) {
  Vocabulary vocabulary = small_vocabulary({});
  vocabulary.tokens.back() = "<|end_of_text|>";
  EXPECT_EQ(Tokenizer(vocabulary).end_of_text(), 256);
}

TEST(Tokenizer, SaysWhenThereIsNoEndOfText) {
  Vocabulary vocabulary = small_vocabulary({});
  vocabulary.tokens.pop_back();
  vocabulary.special.clear();
  vocabulary.added.clear();
  Tokenizer tokenizer(vocabulary);
  expect_user_error([&] { tokenizer.end_of_text(); }, {"<|endoftext|>", "got none"});
}

// Two ways to make a 9 of 1 2 1: with ties the leftmost, else the earlier in the list.
TEST(BpeMerges, TiedMergesGoFromTheLeft) {
  std::vector<Merge> merges = {{2, 1, 9}, {1, 2, 9}};
  Ids symbols = {1, 2, 1};
  BpeMerges(merges).apply(symbols);
  EXPECT_EQ(symbols, (Ids{1, 9}));
  symbols = {1, 2, 1};
  BpeMerges(merges, true).apply(symbols);
  EXPECT_EQ(symbols, (Ids{9, 1}));
}

// The heap of long words against merging the slow, obvious way.
TEST(BpeMerges, LongWordsAgreeWithTheObviousWay) {
  Vocabulary vocabulary =
      small_vocabulary({{"b", "a"}, {"a", "a"}, {"ba", "aa"}, {"aa", "aa"}, {"a", "b"}, {"aaaa", "b"}});
  BpeMerges merges(vocabulary.merges);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Ids symbols(1 + philox4x32(seed, 0, 1)[0] % 200);
    for (size_t i = 0; i < symbols.size(); ++i) symbols[i] = philox4x32(seed, i)[0] % 3 ? 'a' : 'b';
    Ids obvious = symbols;
    for (bool merged = true; merged;) {
      merged = false;
      for (const Merge& merge : vocabulary.merges) {
        for (size_t i = 0; i + 1 < obvious.size() && !merged; ++i) {
          if (obvious[i] != merge.left || obvious[i + 1] != merge.right) continue;
          obvious[i] = merge.result;
          obvious.erase(obvious.begin() + long(i) + 1);
          merged = true;
        }
        if (merged) break;
      }
    }
    merges.apply(symbols);
    EXPECT_EQ(symbols, obvious) << "seed " << seed;
  }
}

TEST(ByteAlphabet, SpellsEveryByteAndReadsItBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += char(byte);
  EXPECT_EQ(unspell_bytes(spell_bytes(bytes)), bytes);
  EXPECT_EQ(spell_bytes(" the\n"), "\u0120the\u010a");
  EXPECT_EQ(unspell_bytes("a b"), std::nullopt);
  EXPECT_EQ(unspell_bytes("\u4e2d"), std::nullopt);
  EXPECT_EQ(byte_alphabet_order()[0], '!');
}

}  // namespace
}  // namespace tokamak
