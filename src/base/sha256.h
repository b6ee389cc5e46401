// SHA-256 (FIPS 180-4): a name for content that nobody can make twice.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

/// The hash of `data` in 64 hexadecimal digits.
std::string sha256(std::string_view data);

}  // namespace tokamak
