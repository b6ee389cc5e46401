// How token ids lie in files: little-endian integers of 8 to 64 bits. Tests: tests/data/sources/token_type_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tokamak {

struct TokenType {
  int bytes = 2;  // 1, 2, 4 or 8
  bool is_signed = false;
  bool marked = false;  // the top bit of 4 bytes is a mark (data/marked_tokens.h), not the id's

  bool operator==(const TokenType&) const = default;
};

inline constexpr TokenType kUint16 = {2, false};
inline constexpr TokenType kUint32 = {4, false};
inline constexpr TokenType kMarkedUint32 = {4, false, true};

/// "uint16", "int64" and the like.
std::string type_name(TokenType type);

/// The type that the option data.token_type names: uint16 or uint32; a UserError for others.
TokenType parse_token_type(std::string_view name);

/// Widens out.size() stored ids to int32. Returns the place of the first that is no token id, which is negative or
/// above 2^31 - 1; out.size() if all are.
size_t widen_tokens(TokenType type, const std::byte* from, std::span<int32_t> out);

/// The same for ids from `path` whose first one is number `begin` there: a UserError that names file, place and value.
void widen_checked(TokenType type, const std::byte* from, std::span<int32_t> out, std::string_view path, int64_t begin);

/// What a user should know of ids that look like those of another type, by the first ones of `path`, which does not say
/// its type: of uint32 read as uint16 every second id is 0, or nearly so. Empty: nothing.
std::string type_warning(TokenType type, std::span<const std::byte> begin, std::string_view path);

}  // namespace tokamak
