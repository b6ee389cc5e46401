// Cuts text into the words that byte-level BPE merges within, exactly as GPT-2's regular expression does:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// For examples see tests/data/pretokenizer_test.cpp.
#pragma once

#include <cstddef>
#include <string_view>

#include "data/unicode_table.h"

namespace tokamak {

/// The end of the word that starts at `begin` (< text.size()). Words are never empty and follow each other without
/// gaps. A byte that is not part of valid UTF-8 counts as a character of class kOther.
size_t word_end(std::string_view text, size_t begin);

/// The class of a code point.
CharClass char_class(uint32_t code_point);

/// A character of text: its class and its length in bytes.
struct Character {
  CharClass kind;
  size_t length;
};

/// The character that starts at `at` (< text.size()): valid UTF-8, or one byte of class kOther.
Character character_at(std::string_view text, size_t at);

}  // namespace tokamak
