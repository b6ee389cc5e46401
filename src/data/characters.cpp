#include "data/characters.h"

#include <array>

namespace tokamak {

namespace {

using enum CharClass;

constexpr std::array<CharClass, 128> ascii_classes() {
  std::array<CharClass, 128> classes = {};
  for (int c = 'a'; c <= 'z'; ++c) classes[size_t(c)] = kLower;
  for (int c = 'A'; c <= 'Z'; ++c) classes[size_t(c)] = kUpper;
  for (int c = '0'; c <= '9'; ++c) classes[size_t(c)] = kNumber;
  for (int c = '\t'; c <= '\r'; ++c) classes[size_t(c)] = kSpace;
  classes[' '] = kSpace;
  return classes;
}

constexpr std::array<CharClass, 128> kAscii = ascii_classes();

}  // namespace

Character character_at(std::string_view text, size_t at) {
  if (auto byte = uint8_t(text[at]); byte < 0x80) return {kAscii[byte], 1};
  CodePoint point = code_point_at(text, at);
  return {point.code == CodePoint::kInvalid ? kOther : char_class(point.code), point.length};
}

CodePoint code_point_at(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return uint32_t(uint8_t(text[at + i])); };
  uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  constexpr CodePoint kInvalid = {CodePoint::kInvalid, 1};
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return kInvalid;
  uint32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return kInvalid;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  bool surrogate = code >= 0xD800 && code < 0xE000;
  if (overlong || surrogate || code > 0x10FFFF) return kInvalid;
  return {code, length};
}

size_t character_before(std::string_view text, size_t end) {
  for (size_t length = 4; length > 1; --length)
    if (length <= end && code_point_at(text.substr(0, end), end - length).length == length) return end - length;
  return end - 1;
}

}  // namespace tokamak
