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
