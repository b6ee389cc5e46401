// Places in text that certainly lie between two words, whatever was before: there a text may be cut, or reading may
// begin, and the tokens are those of the whole. Tests: tests/data/word_border_test.cpp.
#pragma once

#include <cstddef>
#include <string_view>

namespace tokamak {

/// Whether the place before text[at] (0 < at < text.size()) is known to be a word border from the two bytes around it.
/// No pre-tokenizer pattern of GPT-2's, cl100k's or o200k's kind has inside a word
/// - a blank behind a printable ASCII character: a word has a blank at its beginning only, or is white space;
/// - a letter or digit behind a line feed. From 0xE4 on, bytes begin characters of U+4000 and above, none of them
/// space.
inline bool is_word_border(std::string_view text, size_t at) {
  auto before = static_cast<unsigned char>(text[at - 1]), after = static_cast<unsigned char>(text[at]);
  if (after == ' ') return before > ' ' && before < 0x7f;
  bool alphanumeric = (after >= '0' && after <= '9') || ((after | 0x20) >= 'a' && (after | 0x20) <= 'z');
  return before == '\n' && (alphanumeric || after >= 0xE4);
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

}  // namespace tokamak
