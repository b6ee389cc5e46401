// Unicode's normal form NFC: a letter and its marks as one character, where there is one. Tests:
// tests/data/normal_form_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

/// The text itself where it certainly is in this form, else what it becomes, in `buffer`, exactly as Hugging Face's
/// library has it. Bytes that are not UTF-8 stay as they are. UserError in a build without the library for it, for text
/// that is not ASCII or Latin.
std::string_view to_nfc(std::string_view text, std::string& buffer);

}  // namespace tokamak
