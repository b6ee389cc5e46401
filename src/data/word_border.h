// Places in text that certainly lie between two words, whatever was before: there reading may begin. At some of them a
// text may even be cut in two, and the tokens of both parts are those of the whole. Tests:
// tests/data/word_border_test.cpp.
#pragma once

#include <cstddef>
#include <string_view>

namespace tokamak {

/// Whether a text may be cut before text[at] (0 < at < text.size()): at a blank behind a printable ASCII character. No
/// pre-tokenizer pattern of GPT-2's, cl100k's or o200k's kind has it inside a word, as a word has a blank at its
/// beginning only, or is white space; and none looks over it from the word before.
inline bool is_cut(std::string_view text, size_t at) {
  auto before = static_cast<unsigned char>(text[at - 1]);
  return text[at] == ' ' && before > ' ' && before < 0x7f;
}

/// Whether the place before text[at] (0 < at < text.size()) is known to be a word border from the two bytes around it:
/// - a place for a cut;
/// - a letter or digit behind a line feed. From 0xE4 on, bytes begin characters of U+4000 and above, none of them
/// space. No cut: white space that ends a text is one word, before a letter it is two.
inline bool is_word_border(std::string_view text, size_t at) {
  auto before = static_cast<unsigned char>(text[at - 1]), after = static_cast<unsigned char>(text[at]);
  bool alphanumeric = (after >= '0' && after <= '9') || ((after | 0x20) >= 'a' && (after | 0x20) <= 'z');
  return is_cut(text, at) || (before == '\n' && (alphanumeric || after >= 0xE4));
}

/// The first such place from `from` (> 0) on; npos if there is none.
inline size_t first_word_border(std::string_view text, size_t from) {
  for (size_t at = from; at < text.size(); ++at)
    if (is_word_border(text, at)) return at;
  return std::string_view::npos;
}

/// The last such place; npos if there is none.
inline size_t last_word_border(std::string_view text) {
  for (size_t at = text.size(); at-- > 1;)
    if (is_word_border(text, at)) return at;
  return std::string_view::npos;
}

/// The last place for a cut; npos if there is none.
inline size_t last_cut(std::string_view text) {
  for (size_t at = text.size(); at-- > 1;)
    if (is_cut(text, at)) return at;
  return std::string_view::npos;
}

}  // namespace tokamak
