#include "data/pretokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tokamak {
namespace {

using Words = std::vector<std::string>;

Words cut(std::string_view text) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    size_t end = word_end(text, at);
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

TEST(Pretokenizer, KeepsTheSpaceBeforeAWord) {
  EXPECT_EQ(cut("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(cut("a1 b22!? c"), (Words{"a", "1", " b", "22", "!?", " c"}));
}

TEST(Pretokenizer, CutsContractions) {
  EXPECT_EQ(cut("don't we'll they've I'm he'd you're it's"),
            (Words{"don", "'t", " we", "'ll", " they", "'ve", " I", "'m", " he", "'d", " you", "'re", " it", "'s"}));
  EXPECT_EQ(cut("DON'T"), (Words{"DON", "'", "T"}));
  EXPECT_EQ(cut("'lx 'v '"), (Words{"'", "lx", " '", "v", " '"}));
  EXPECT_EQ(cut("''s"), (Words{"''", "s"}));
}

TEST(Pretokenizer, LeavesTheLastSpaceOfARunToTheNextWord) {
  EXPECT_EQ(cut("a   b"), (Words{"a", "  ", " b"}));
  EXPECT_EQ(cut("a\n\n b"), (Words{"a", "\n\n", " b"}));
  EXPECT_EQ(cut("a \n b"), (Words{"a", " \n", " b"}));
  EXPECT_EQ(cut("a\t\tb"), (Words{"a", "\t", "\t", "b"}));
  EXPECT_EQ(cut("a  "), (Words{"a", "  "}));
  EXPECT_EQ(cut(" "), (Words{" "}));
}

TEST(Pretokenizer, KnowsUnicodeClasses) {
  EXPECT_EQ(char_class(0x00E9), CharClass::kLetter);
  EXPECT_EQ(char_class(0x4E2D), CharClass::kLetter);
  EXPECT_EQ(char_class(0x31350), CharClass::kLetter);  // came with Unicode 15
  EXPECT_EQ(char_class(0x00BD), CharClass::kNumber);
  EXPECT_EQ(char_class(0x0664), CharClass::kNumber);
  EXPECT_EQ(char_class(0x3000), CharClass::kSpace);
  EXPECT_EQ(char_class(0x0085), CharClass::kSpace);
  EXPECT_EQ(char_class(0x001C), CharClass::kOther);  // Python calls it a space, Unicode does not
  EXPECT_EQ(char_class(0x0301), CharClass::kOther);  // combining marks are no letters
  EXPECT_EQ(char_class(0x10FFFF), CharClass::kOther);
  EXPECT_EQ(cut("\u00e9t\u00e9\u3000\u4e2d\u6587\u00bd"), (Words{"\u00e9t\u00e9", "\u3000", "\u4e2d\u6587", "\u00bd"}));
}

TEST(Pretokenizer, TakesBrokenUtf8AsSingleBytes) {
  for (std::string broken :
       {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xF4\x90\x80\x80"}) {
    Character first = character_at(broken, 0);
    EXPECT_EQ(first.length, 1u);
    EXPECT_EQ(first.kind, CharClass::kOther);
    EXPECT_EQ(cut("a" + broken + "b").front(), "a");
    EXPECT_EQ(cut("a" + broken + "b").back(), "b");
  }
  EXPECT_EQ(character_at("\xF4\x8F\xBF\xBF", 0).length, 4u);
}

}  // namespace
}  // namespace tokamak
