#include "base/printable.h"

#include <fmt/core.h>

namespace tokamak {

namespace {

using Byte = unsigned char;

bool is_control(Byte byte) { return (byte < 0x20 && byte != '\n' && byte != '\t'); }

}  // namespace

std::string printable(std::string_view text) {
  constexpr Byte kDelete = 0x7f;  // JSON, which has escapes for what is below, has it as it is
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = Byte(text[i]);
    bool is_wide = byte == 0xc2 && i + 1 < text.size() && Byte(text[i + 1]) >= 0x80 && Byte(text[i + 1]) < 0xa0;
    // Alone, a terminal of 8 bits takes these for the same.
    bool is_alone = byte >= 0x80 && byte < 0xa0 && (i == 0 || Byte(text[i - 1]) < 0x80);
    if (is_wide) {
      result += fmt::format("\\u{:04x}", unsigned(Byte(text[++i])));
    } else if (byte == kDelete) {
      result += "\\u007f";
    } else if (is_control(byte) || is_alone) {
      result += fmt::format("\\x{:02x}", unsigned(byte));
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace tokamak
