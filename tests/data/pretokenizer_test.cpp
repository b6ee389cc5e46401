#include "data/pretokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "data/characters.h"
#include "data/word_block.h"
#include "tests/data/tiny_regex.h"
#include "tests/support/shared_data.h"

namespace tokamak {
namespace {

using Words = std::vector<std::string>;

Words cut(std::string_view text, Pretokenizer pretokenizer = Pretokenizer::kGpt2) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    size_t end = pretokenizer_info(pretokenizer).word_end(text, at);
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

TEST(Pretokenizer, Cl100kCutsNumbersAndLines) {
  auto cl100k = [](std::string_view text) { return cut(text, Pretokenizer::kCl100k); };
  EXPECT_EQ(cl100k("12345 67"), (Words{"123", "45", " ", "67"}));
  EXPECT_EQ(cl100k("DON'T \"it'S"), (Words{"DON", "'T", " \"", "it", "'S"}));
  EXPECT_EQ(cl100k("f(x){\n\n  return\n}"), (Words{"f", "(x", "){\n\n", " ", " return", "\n", "}"}));
  EXPECT_EQ(cl100k("a \n\n b\n  "), (Words{"a", " \n\n", " b", "\n  "}));
  EXPECT_EQ(cut("a \n\n b\n  ", Pretokenizer::kLlama3), (Words{"a", " \n\n", " b", "\n", "  "}));
}

TEST(Pretokenizer, O200kCutsAtCapitals) {
  auto o200k = [](std::string_view text) { return cut(text, Pretokenizer::kO200k); };
  EXPECT_EQ(o200k("camelCase HTTPServer it's O'Neil"), (Words{"camel", "Case", " HTTPServer", " it's", " O", "'Neil"}));
  EXPECT_EQ(o200k("and/or//\n\nA"), (Words{"and", "/or", "//\n\n", "A"}));
  EXPECT_EQ(o200k("\u4e2dAB"), (Words{"\u4e2d", "AB"}));
}

const Words& pieces_that_matter() {
  static const Words pieces = {"a",      "s",      "t",      "ll",     "ve",     "re",     "S",      "T",      "LL",
                               "A",      "B",      "'",      "'",      " ",      " ",      " ",      "\n",     "\r",
                               ".",      "/",      "-",      "1",      "23",     "\t",     "\u00e9", "\u00c9", "\u01c5",
                               "\u02b0", "\u4e2d", "\u0301", "\u0664", "\u00a0", "\u2028", "\u017f", "\x80",   "'"};
  return pieces;
}

std::string random_text(uint64_t seed) {
  std::string text;
  const Words& pieces = pieces_that_matter();
  for (uint64_t i = 0; i < 1 + seed % 9; ++i) text += pieces[philox4x32(seed, i)[0] % pieces.size()];
  return text;
}

// Every expression that we know, as a slow matcher reads it, on texts of characters that matter.
TEST(Pretokenizer, AgreesWithAMatcherOfItsExpressions) {
  for (const PretokenizerInfo& info : pretokenizers()) {
    Words expressions(info.spellings.begin(), info.spellings.end());
    if (!info.expression.empty()) expressions.emplace_back(info.expression);
    for (const std::string& expression : expressions) {
      TinyRegex regex(expression);
      for (uint64_t seed = 0; seed < 4000; ++seed) {
        std::string text = random_text(seed);
        for (size_t at = 0; at < text.size();) {
          size_t end = info.word_end(text, at);
          ASSERT_EQ(end, regex.match(text, at)) << info.name << " at " << at << " of '" << text << "'";
          at = end;
        }
      }
    }
  }
}

// tiktoken's own spelling of cl100k, which means something else to Hugging Face's library.
TEST(Pretokenizer, Cl100kIsWhatTiktokenHas) {
  TinyRegex regex(
      R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)");
  for (std::string text : {"I'M 12345.\r\n\r\nx\t\ty \n z\n \n ", "\u3000a\u3000\u3000b '\u017f ''s", "!?\n1\n"})
    for (size_t at = 0; at < text.size(); at = regex.match(text, at))
      ASSERT_EQ(pretokenizer_info(Pretokenizer::kCl100k).word_end(text, at), regex.match(text, at)) << text << at;
}

// The quick look at ASCII words finds nothing but words.
TEST(Pretokenizer, AsciiWordsAreWords) {
  int found = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    std::string text(kBlockBytes + 4, ' ');
    for (size_t i = 0; i < text.size(); ++i) {
      uint32_t bits = philox4x32(seed, i)[0];
      text[i] =
          (bits >> 8) % 12 > 0 && i > 0 ? char('A' + (bits >> 16) % 26 + (bits & 32)) : " '\n.[`{@\xC3z"[bits % 10];
    }
    WordBlock block = load_block(text);
    if (size_t length = ascii_word_length(block)) {
      ++found;
      for (Pretokenizer id : {Pretokenizer::kGpt2, Pretokenizer::kCl100k, Pretokenizer::kLlama3, Pretokenizer::kQwen2,
                              Pretokenizer::kDigits})
        ASSERT_EQ(pretokenizer_info(id).word_end(text, 0), length) << text;
      if (ends_there_when_cased(block, length)) {
        ASSERT_EQ(pretokenizer_info(Pretokenizer::kO200k).word_end(text, 0), length) << text;
        ASSERT_EQ(pretokenizer_info(Pretokenizer::kTekken).word_end(text, 0), length) << text;
      }
    }
  }
  EXPECT_GT(found, 1000);
}

// GPT-2's words of each piece between digits, by itself.
TEST(Pretokenizer, DigitsAreCutOutFirst) {
  EXPECT_EQ(cut("a   12 b1's", Pretokenizer::kDigits), (Words{"a", "   ", "1", "2", " b", "1", "'s"}));
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    std::string text = random_text(seed), piece;
    Words expected;
    auto end_piece = [&] {
      for (std::string& word : cut(piece)) expected.push_back(std::move(word));
      piece.clear();
    };
    for (size_t at = 0; at < text.size();) {
      Character next = character_at(text, at);
      std::string one = text.substr(at, next.length);
      at += next.length;
      if (next.kind != CharClass::kNumber) {
        piece += one;
        continue;
      }
      end_piece();
      expected.push_back(one);
    }
    end_piece();
    ASSERT_EQ(cut(text, Pretokenizer::kDigits), expected) << text;
  }
}

TEST(Pretokenizer, IsFoundByNameAndExpression) {
  EXPECT_EQ(pretokenizer_by_name("o200k"), Pretokenizer::kO200k);
  EXPECT_EQ(pretokenizer_by_name("x"), std::nullopt);
  EXPECT_EQ(pretokenizer_by_expression("\\w+"), std::nullopt);
  for (const PretokenizerInfo& info : pretokenizers()) {
    EXPECT_EQ(&pretokenizer_info(info.id), &info);
    if (!info.expression.empty()) {
      EXPECT_EQ(pretokenizer_by_expression(info.expression), info.id);
    }
    for (std::string_view spelling : info.spellings) EXPECT_EQ(pretokenizer_by_expression(spelling), info.id);
  }
}

TEST(Characters, HaveUnicodeClasses) {
  using enum CharClass;
  EXPECT_EQ(char_class(0x00E9), kLower);
  EXPECT_EQ(char_class(0x00C9), kUpper);
  EXPECT_EQ(char_class(0x01C5), kUpper);  // a title-case letter
  EXPECT_EQ(char_class(0x02B0), kLetter);
  EXPECT_EQ(char_class(0x4E2D), kLetter);
  EXPECT_EQ(char_class(0x31350), kLetter);  // came with Unicode 15
  EXPECT_EQ(char_class(0x00BD), kNumber);
  EXPECT_EQ(char_class(0x0664), kNumber);
  EXPECT_EQ(char_class(0x3000), kSpace);
  EXPECT_EQ(char_class(0x0085), kSpace);
  EXPECT_EQ(char_class(0x001C), kOther);  // Python calls it a space, Unicode does not
  EXPECT_EQ(char_class(0x0301), kMark);
  EXPECT_EQ(char_class(0xE0100), kMark);
  EXPECT_EQ(char_class(0x10FFFF), kOther);
  EXPECT_EQ(char_class(0x110000), kOther);
  EXPECT_EQ(cut("\u00e9t\u00e9\u3000\u4e2d\u6587\u00bd"), (Words{"\u00e9t\u00e9", "\u3000", "\u4e2d\u6587", "\u00bd"}));
  for (uint32_t code = 0; code < 0x80; ++code) {
    char byte = char(code);
    EXPECT_EQ(character_at({&byte, 1}, 0).kind, char_class(code)) << code;
  }
}

TEST(Characters, TakeBrokenUtf8AsSingleBytes) {
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
