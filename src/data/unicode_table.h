// The classes of characters that byte-level BPE tells apart: letters (L*), numbers (N*), White_Space, and the rest.
// The table itself is generated (tools/make_unicode_table.py).
#pragma once

#include <cstdint>
#include <span>

namespace tokamak {

enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace };

/// Code points first..last, both included, are all of one class.
struct UnicodeRange {
  uint32_t first;
  uint32_t last;
  CharClass kind;
};

/// All ranges of the three named classes, ascending; what is in none of them is kOther.
std::span<const UnicodeRange> unicode_ranges();

}  // namespace tokamak
