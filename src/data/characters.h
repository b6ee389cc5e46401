// The characters of UTF-8 text, one at a time, with their classes.
#pragma once

#include <cstddef>
#include <string_view>

#include "data/unicode_table.h"

namespace tokamak {

/// A character of text: its class and its length in bytes.
struct Character {
  CharClass kind;
  size_t length;
};

/// The character that starts at `at` (< text.size()): valid UTF-8, or one byte of class kOther.
Character character_at(std::string_view text, size_t at);

/// A code point and its length in bytes.
struct CodePoint {
  static constexpr uint32_t kInvalid = ~0u;
  uint32_t code;
  size_t length;
};

/// The same character's code point; kInvalid, of length 1, where the text is not UTF-8.
CodePoint code_point_at(std::string_view text, size_t at);

/// The place of the character that ends at `end` (> 0): the longest that does, or one byte.
size_t character_before(std::string_view text, size_t end);

/// Some of the classes, as bits.
struct CharSet {
  unsigned bits = 0;
  constexpr bool has(CharClass kind) const { return bits >> unsigned(kind) & 1; }
};

template <typename... Classes>
constexpr CharSet char_set(Classes... classes) {
  return {((1u << unsigned(classes)) | ...)};
}

}  // namespace tokamak
