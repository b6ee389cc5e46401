#include "data/pretokenizer.h"

#include <algorithm>
#include <array>

namespace tokamak {

namespace {

using enum CharClass;

constexpr std::array<CharClass, 128> ascii_classes() {
  std::array<CharClass, 128> classes = {};
  for (int c = 'a'; c <= 'z'; ++c) classes[size_t(c)] = classes[size_t(c - 'a' + 'A')] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[size_t(c)] = kNumber;
  for (int c = '\t'; c <= '\r'; ++c) classes[size_t(c)] = kSpace;
  classes[' '] = kSpace;
  return classes;
}

constexpr std::array<CharClass, 128> kAscii = ascii_classes();

/// The length of the contraction ('s 't 'm 'd 're 've 'll) at an apostrophe, 0 if there is none.
size_t contraction_length(std::string_view text) {
  if (text.size() < 2) return 0;
  char c = text[1];
  if (c == 's' || c == 't' || c == 'm' || c == 'd') return 2;
  if (text.size() < 3) return 0;
  char d = text[2];
  return (c == 'r' && d == 'e') || (c == 'v' && d == 'e') || (c == 'l' && d == 'l') ? 3 : 0;
}

size_t skip_class(std::string_view text, size_t at, CharClass kind) {
  while (at < text.size()) {
    Character next = character_at(text, at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

/// White space up to a word: the run without its last character, which starts the next word if it is a plain space.
size_t space_end(std::string_view text, size_t begin) {
  size_t at = begin, last = begin;
  while (at < text.size()) {
    Character next = character_at(text, at);
    if (next.kind != kSpace) return last > begin ? last : at;
    last = at;
    at += next.length;
  }
  return at;
}

}  // namespace

CharClass char_class(uint32_t code_point) {
  if (code_point < kAscii.size()) return kAscii[code_point];
  auto ranges = unicode_ranges();
  auto after = std::upper_bound(ranges.begin(), ranges.end(), code_point,
                                [](uint32_t code, const UnicodeRange& range) { return code < range.first; });
  if (after == ranges.begin()) return kOther;
  const UnicodeRange& range = *(after - 1);
  return code_point <= range.last ? range.kind : kOther;
}

Character character_at(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return uint32_t(uint8_t(text[at + i])); };
  uint32_t lead = byte(0);
  if (lead < 0x80) return {kAscii[lead], 1};
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  constexpr Character kInvalid = {kOther, 1};
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return kInvalid;
  uint32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return kInvalid;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  bool surrogate = code >= 0xD800 && code < 0xE000;
  if (overlong || surrogate || code > 0x10FFFF) return kInvalid;
  return {char_class(code), length};
}

size_t word_end(std::string_view text, size_t begin) {
  if (text[begin] == '\'') {
    if (size_t length = contraction_length(text.substr(begin, 3))) return begin + length;
  }
  Character first = character_at(text, begin);
  size_t next = begin + first.length;
  if (text[begin] == ' ' && next < text.size()) {
    Character second = character_at(text, next);
    if (second.kind != kSpace) return skip_class(text, next + second.length, second.kind);
  }
  if (first.kind == kSpace) return space_end(text, begin);
  return skip_class(text, next, first.kind);
}

}  // namespace tokamak
