// Text of others, such as names inside archives, on a terminal. Tests: tests/base/printable_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

/// The text without anything that a terminal would obey: control characters but line breaks and tabs become \\x1b and
/// the like, also the two-byte ones of UTF-8 (U+0080 to U+009F). Of JSON it makes JSON of the same meaning.
std::string printable(std::string_view text);

}  // namespace tokamak
