#include "base/crc32c.h"

#include <array>

namespace tokamak {
namespace {

// Of each byte, by the polynomial 0x1EDC6F41 with its bits turned round (RFC 3720, appendix B.4).
constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~uint32_t(0);
  for (char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ uint8_t(byte)) & 0xFF];
  return ~crc;
}

}  // namespace tokamak
