#include "data/sources/token_type.h"

#include <algorithm>
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

// No vocabulary has more ids.
constexpr int64_t kMostIds = 1 << 20;

/// Of ids read as half of what they are: the upper halves are next to nothing, the lower ones are not.
bool are_halves(TokenType type, std::span<const std::byte> begin) {
  constexpr size_t kLeast = 32;
  size_t pairs = begin.size() / size_t(2 * type.bytes);
  if (pairs < kLeast) return false;
  int64_t most_lower = 0, most_upper = 0;
  with_type(type, [&](auto stored) {
    using Stored = decltype(stored);
    for (size_t i = 0; i < pairs; ++i) {
      most_lower = std::max(most_lower, int64_t(stored_at<Stored>(begin.data(), 2 * i)));
      most_upper = std::max(most_upper, int64_t(stored_at<Stored>(begin.data(), 2 * i + 1)));
    }
  });
  int64_t upper = type.bytes == 2 ? kMostIds >> 16 : 1;  // what upper halves are below
  return most_upper < upper && most_lower >= upper;
}

/// Most ids are larger than those of any vocabulary.
bool are_pairs(std::span<const std::byte> begin) {
  constexpr size_t kLeast = 16;
  size_t count = begin.size() / sizeof(uint32_t), large = 0;
  for (size_t i = 0; i < count; ++i) large += stored_at<uint32_t>(begin.data(), i) >= uint32_t(kMostIds);
  return count >= kLeast && large > count / 2;
}

}  // namespace

std::string type_name(TokenType type) {
  return fmt::format("{}int{}{}", type.is_signed ? "" : "u", 8 * type.bytes, type.marked ? " with marks" : "");
}

TokenType parse_token_type(std::string_view name) {
  if (name == "uint16") return kUint16;
  if (name == "uint32") return kUint32;
  user_error("[data] expected uint16 or uint32 as the type of tokens, got '{}'", name);
}

size_t widen_tokens(TokenType type, const std::byte* from, std::span<int32_t> out) {
  if (type.marked) {
    std::memcpy(out.data(), from, out.size_bytes());
    return out.size();
  }
  return with_type(type, [&](auto stored) { return widen<decltype(stored)>(from, out); });
}

std::string type_warning(TokenType type, std::span<const std::byte> begin, std::string_view path) {
  bool is_short = type == kUint16;
  if (are_halves(type, begin))
    return fmt::format("warning: {}: every second token is {} when they are read as {}, as if they were {}; {}", path,
                       is_short ? "0 or nearly so" : "0", type_name(type), is_short ? "uint32" : "64-bit integers",
                       is_short ? "then name data.token_type=uint32 (--token-type=uint32)" : "save them as uint32");
  if (!is_short && are_pairs(begin))
    return fmt::format(
        "warning: {}: most tokens are above a million when they are read as uint32, as if they were uint16; then name "
        "data.token_type=uint16 (--token-type=uint16)",
        path);
  return "";
}

void widen_checked(TokenType type, const std::byte* from, std::span<int32_t> out, std::string_view path,
                   int64_t begin) {
  size_t bad = widen_tokens(type, from, out);
  if (bad == out.size()) return;
  std::string value =
      with_type(type, [&](auto stored) { return std::to_string(stored_at<decltype(stored)>(from, bad)); });
  user_error(
      "[data] {}: expected token ids from 0 to {}, got {} as token {}; the file is damaged, or its tokens are not "
      "of type {} (data.token_type, where the file does not say it)",
      path, std::numeric_limits<int32_t>::max(), value, begin + int64_t(bad), type_name(type));
}

}  // namespace tokamak
