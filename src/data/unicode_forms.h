// What is asked of a library of Unicode's. Of two files with this function a build has one: with utf8proc, or without.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

/// Appends valid UTF-8 in the form NFC. UserError in a build without the library.
void append_nfc(std::string_view text, std::string& out);

}  // namespace tokamak
