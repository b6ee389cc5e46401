// What a file that is taken for text begins with: whether it is text, and what is odd about it.
// Tests: tests/data/sources/text_begin_test.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tokamak {

/// As much of a file's beginning as is looked at.
inline constexpr size_t kTextBegin = 4096;

/// The mark that some programs put before UTF-8; it is no text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// A UserError if this beginning of the file `name` is that of an archive, a compressed file, Parquet, PDF or UTF-16,
/// or has bytes of zero.
void refuse_other_than_text(std::string_view begin, std::string_view name);

/// What a user should know of a file that is taken as text all the same: a table (CSV), JSON, no UTF-8. Empty: nothing,
/// also where it is refused.
std::string text_warning(std::string_view begin, std::string_view name);

}  // namespace tokamak
