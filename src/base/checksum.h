// A fast 64-bit checksum that finds damaged files; it is no protection against someone who wants to deceive.
// The function is XXH64 with seed 0, as written in "xxHash fast digest algorithm" (Yann Collet), so other tools can
// check our files (`xxhsum -H1`).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tokamak {

/// The checksum of data that comes in pieces; how it is cut does not matter.
class Checksum {
 public:
  /// Appends bytes.
  void update(std::span<const std::byte> bytes);

  /// The checksum of everything appended so far; appending may go on.
  uint64_t digest() const;

 private:
  std::array<uint64_t, 4> lanes_ = {0x60EA27EEADC0B5D6u, 0xC2B2AE3D27D4EB4Fu, 0, 0x61C8864E7A143579u};
  std::array<std::byte, 32> tail_ = {};
  uint64_t length_ = 0;
};

/// The checksum of one piece.
uint64_t checksum(std::span<const std::byte> bytes);

/// How checksums are written into our files: "xxh64:" and 16 hexadecimal digits.
std::string format_checksum(uint64_t digest);

}  // namespace tokamak
