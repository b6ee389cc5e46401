#include "data/normal_form.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "data/characters.h"
#include "data/unicode_forms.h"

namespace tokamak {

namespace {

// The first byte of U+0300: no text of characters before it changes.
constexpr unsigned char kFirstThatMayChange = 0xCC;

struct Range {
  uint32_t first, last;
};

// Characters that change with their neighbours since Unicode 10. Hugging Face's library (0.23) has the tables of
// Unicode 9, to which they are letters like any other: what is on one side of them stays there.
constexpr Range kUnknown[] = {
    {0x7FD, 0x7FD},     {0x897, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x105D2, 0x105D2}, {0x105DA, 0x105DA}, {0x10D24, 0x10D27}, {0x10D69, 0x10D6D},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
    {0x1133B, 0x1133B}, {0x113B8, 0x113B8}, {0x113BB, 0x113BB}, {0x113C2, 0x113C2}, {0x113C9, 0x113C9},
    {0x113CE, 0x113CE}, {0x113D0, 0x113D0}, {0x113E1, 0x113E2}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x1611E, 0x16120}, {0x16129, 0x16129}, {0x1612F, 0x1612F}, {0x16FF0, 0x16FF1},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x1E5EE, 0x1E5EF}};

bool is_unknown(uint32_t code) {
  auto at = std::lower_bound(std::begin(kUnknown), std::end(kUnknown), code,
                             [](const Range& range, uint32_t of) { return range.last < of; });
  return at != std::end(kUnknown) && at->first <= code;
}

/// The next character from `at` on that is by itself: of those, or a byte that is no text.
size_t known_end(std::string_view text, size_t at) {
  while (at < text.size()) {
    CodePoint next = code_point_at(text, at);
    if (next.code == CodePoint::kInvalid || is_unknown(next.code)) break;
    at += next.length;
  }
  return at;
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& buffer) {
  auto may_change = [](char c) { return static_cast<unsigned char>(c) >= kFirstThatMayChange; };
  if (std::none_of(text.begin(), text.end(), may_change)) return text;
  buffer.clear();
  for (size_t at = 0; at < text.size();) {
    size_t end = known_end(text, at);
    if (end > at) append_nfc(text.substr(at, end - at), buffer);
    size_t length = end < text.size() ? code_point_at(text, end).length : 0;
    buffer += text.substr(end, length);
    at = end + length;
  }
  return buffer;
}

}  // namespace tokamak
