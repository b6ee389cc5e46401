// SHA-256 (FIPS 180-4): a name for content that nobody can make twice.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

/// The hash of `data` in 64 hexadecimal digits.
std::string sha256(std::string_view data);

/// HMAC (RFC 2104) with it, in 64 hexadecimal digits: what only someone who knows the key can say of `data`.
std::string hmac_sha256(std::string_view key, std::string_view data);

}  // namespace tokamak
