// The classes of characters that byte-level BPE tells apart. The table is generated (tools/make_unicode_table.py).
#pragma once

#include <cstdint>

namespace tokamak {

/// By Unicode's general category: M*; Lu and Lt; Ll; Lm and Lo; N*; and the White_Space property. kOther is the rest.
enum class CharClass : uint8_t { kOther, kMark, kUpper, kLower, kLetter, kNumber, kSpace };

/// The class of a code point; kOther for what is none.
CharClass char_class(uint32_t code_point);

/// Whether regular expressions count it as \w: letters, marks, decimal digits, connecting punctuation and joiners.
bool is_word_code(uint32_t code_point);

}  // namespace tokamak
