#include "data/byte_alphabet.h"

namespace tokamak {

namespace {

constexpr bool is_printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint8_t, 256> order = {};        // bytes, printable first
  std::array<uint16_t, 256> code_point = {};  // of each byte
  std::array<int16_t, 512> byte = {};         // of each code point, -1: none
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  size_t count = 0;
  uint16_t next = 256;
  for (bool printable : {true, false}) {
    for (int byte = 0; byte < 256; ++byte) {
      if (is_printable(byte) != printable) continue;
      uint16_t code = printable ? uint16_t(byte) : next++;
      alphabet.order[count++] = uint8_t(byte);
      alphabet.code_point[size_t(byte)] = code;
      alphabet.byte[code] = int16_t(byte);
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::array<uint8_t, 256> byte_alphabet_order() { return kAlphabet.order; }

std::string spell_bytes(std::string_view bytes) {
  std::string spelling;
  spelling.reserve(bytes.size() + bytes.size() / 4);
  for (char c : bytes) {
    unsigned code = kAlphabet.code_point[uint8_t(c)];
    if (code < 0x80) {
      spelling += char(code);
    } else {
      spelling += char(0xC0u | code >> 6);
      spelling += char(0x80u | (code & 0x3Fu));
    }
  }
  return spelling;
}

std::optional<std::string> unspell_bytes(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t i = 0; i < spelling.size(); ++i) {
    unsigned code = uint8_t(spelling[i]);
    if (code >= 0x80) {
      // The alphabet ends below U+0200, so two bytes of UTF-8 hold any of it.
      if (code < 0xC2 || code > 0xC7 || i + 1 == spelling.size()) return std::nullopt;
      unsigned follow = uint8_t(spelling[++i]);
      if ((follow & 0xC0u) != 0x80u) return std::nullopt;
      code = (code & 0x1Fu) << 6 | (follow & 0x3Fu);
    }
    if (kAlphabet.byte[code] < 0) return std::nullopt;
    bytes += char(kAlphabet.byte[code]);
  }
  return bytes;
}

}  // namespace tokamak
