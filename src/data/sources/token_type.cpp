#include "data/sources/token_type.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"

namespace tokamak {

namespace {

static_assert(std::endian::native == std::endian::little, "ids are read as they lie in files");

/// Calls use(Stored()) with the C++ type of `type`.
template <typename Use>
auto with_type(TokenType type, Use&& use) {
  switch (type.bytes) {
    case 1: return type.is_signed ? use(int8_t()) : use(uint8_t());
    case 2: return type.is_signed ? use(int16_t()) : use(uint16_t());
    case 4: return type.is_signed ? use(int32_t()) : use(uint32_t());
    default: return type.is_signed ? use(int64_t()) : use(uint64_t());
  }
}

template <typename Stored>
Stored stored_at(const std::byte* from, size_t i) {
  Stored value;
  std::memcpy(&value, from + i * sizeof value, sizeof value);
  return value;
}

template <typename Stored>
bool is_token(Stored value) {
  if (std::is_signed_v<Stored> && value < 0) return false;
  return uint64_t(value) <= uint64_t(std::numeric_limits<int32_t>::max());
}

template <typename Stored>
size_t widen(const std::byte* from, std::span<int32_t> out) {
  bool all = true;
  for (size_t i = 0; i < out.size(); ++i) {  // without an early end, so that it becomes SIMD
    Stored value = stored_at<Stored>(from, i);
    all &= is_token(value);
    out[i] = int32_t(value);
  }
  if (all) return out.size();
  size_t i = 0;
  while (is_token(stored_at<Stored>(from, i))) ++i;
  return i;
}

}  // namespace

std::string type_name(TokenType type) { return fmt::format("{}int{}", type.is_signed ? "" : "u", 8 * type.bytes); }

TokenType parse_token_type(std::string_view name) {
  if (name == "uint16") return kUint16;
  if (name == "uint32") return kUint32;
  user_error("[data] expected uint16 or uint32 as the type of tokens, got '{}'", name);
}

size_t widen_tokens(TokenType type, const std::byte* from, std::span<int32_t> out) {
  return with_type(type, [&](auto stored) { return widen<decltype(stored)>(from, out); });
}

void widen_checked(TokenType type, const std::byte* from, std::span<int32_t> out, std::string_view path,
                   int64_t begin) {
  size_t bad = widen_tokens(type, from, out);
  if (bad == out.size()) return;
  std::string value =
      with_type(type, [&](auto stored) { return std::to_string(stored_at<decltype(stored)>(from, bad)); });
  user_error(
      "[data] {}: expected token ids from 0 to {}, got {} as token {}; the file is damaged, or its tokens are not "
      "of type {}",
      path, std::numeric_limits<int32_t>::max(), value, begin + int64_t(bad), type_name(type));
}

}  // namespace tokamak
