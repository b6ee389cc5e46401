#include "data/word_border.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "data/pretokenizer.h"

namespace tokamak {
namespace {

std::string random_text(uint64_t seed, size_t characters) {
  static const char* const kCharacters[] = {"a",  "Z",  "7",    "é",      "中", "\u00A0", "\u3000", " ", " ",
                                            " ",  "\n", "\n",   "\r\n",   ".",  "'s",     "'",      "/", "—",
                                            "\t", "「", "\xff", "\u2003", "x",  "\u0308", "𝒳",      "😀", "٣"};
  std::string text;
  for (uint64_t i = 0; i < characters; ++i) text += kCharacters[philox4x32(seed, i)[0] % std::size(kCharacters)];
  return text;
}

// The slow way: where the words of the whole text begin.
std::set<size_t> word_begins(std::string_view text, WordEnd word_end) {
  std::set<size_t> begins;
  for (size_t at = 0; at < text.size(); at = word_end(text, at)) begins.insert(at);
  return begins;
}

TEST(WordBorder, IsAlwaysBetweenWords) {
  for (const PretokenizerInfo& pretokenizer : pretokenizers()) {
    int borders = 0;
    for (uint64_t seed = 0; seed < 500; ++seed) {
      std::string text = random_text(seed, 200);
      std::set<size_t> begins = word_begins(text, pretokenizer.word_end);
      for (size_t at = 1; at < text.size(); ++at) {
        if (!is_word_border(text, at)) continue;
        ++borders;
        ASSERT_TRUE(begins.contains(at)) << pretokenizer.name << ", seed " << seed << ": " << text.substr(at - 1, 10);
      }
    }
    EXPECT_GT(borders, 1000);
  }
}

TEST(WordBorder, FirstAndLast) {
  std::string_view text = "ab  cd\nef. \u00A0";
  EXPECT_EQ(first_word_border(text, 1), 2u);
  EXPECT_EQ(first_word_border(text, 3), 7u);
  EXPECT_EQ(last_word_border(text), 10u);
  EXPECT_EQ(first_word_border("abc", 1), std::string_view::npos);
  EXPECT_EQ(last_word_border(""), std::string_view::npos);
  EXPECT_EQ(first_word_border(text, 11), std::string_view::npos);
}

}  // namespace
}  // namespace tokamak
