// Words of up to 15 bytes as two machine words, and a quick look at the most frequent kind of word.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tokamak {

/// The first 16 bytes of a text; the first is the lowest.
struct WordBlock {
  uint64_t low, high;
  bool operator==(const WordBlock&) const = default;
};

inline constexpr size_t kBlockBytes = sizeof(WordBlock);
inline constexpr size_t kMaxKeyBytes = kBlockBytes - 1;

/// The block that a text begins with; zeros follow a shorter one.
inline WordBlock load_block(std::string_view text) {
  static_assert(std::endian::native == std::endian::little, "words are compared as little-endian numbers");
  WordBlock block = {0, 0};
  if (text.size() >= kBlockBytes) {
    std::memcpy(&block, text.data(), kBlockBytes);
  } else {
    std::memcpy(&block, text.data(), text.size());
  }
  return block;
}

/// Byte number `at`, below kBlockBytes.
inline uint8_t byte_at(WordBlock block, size_t at) {
  return uint8_t(at < 8 ? block.low >> 8 * at : block.high >> 8 * (at - 8));
}

/// A word of `length` (1 to 15) bytes that a block begins with, with its length in the last byte: equal for equal
/// words.
inline WordBlock word_key(WordBlock block, size_t length) {
  uint64_t low_mask = length >= 8 ? ~uint64_t(0) : (uint64_t(1) << 8 * length) - 1;
  uint64_t high_mask = length <= 8 ? 0 : (uint64_t(1) << 8 * (length - 8)) - 1;
  return {block.low & low_mask, (block.high & high_mask) | uint64_t(length) << 56};
}

/// A number that is spread over all 64 bits; the upper ones are the best.
inline uint64_t hash_key(WordBlock key) {
  constexpr uint64_t kMix = 0x9E3779B97F4A7C15u;
  uint64_t hash = (key.low ^ (key.high * 0xC2B2AE3D27D4EB4Fu)) * kMix;
  return (hash ^ hash >> 32) * kMix;
}

/// The length of a key's word.
inline size_t key_length(WordBlock key) { return size_t(key.high >> 56); }

/// The highest bit of each byte that is not an ASCII letter.
inline uint64_t non_letters(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  uint64_t lower = (bytes | 0x20 * kOnes) & 0x7F * kOnes;  // of ASCII letters; 7 bits, so that sums do not carry over
  uint64_t from_a = lower + (0x80 - 'a') * kOnes, after_z = lower + (0x7F - 'z') * kOnes;
  return ~(from_a & ~after_z & ~bytes) & 0x80 * kOnes;
}

/// The length of the word that a block of text begins with if it is of the form ` ?[A-Za-z]+`, at most 15 bytes long
/// and before an ASCII character; else 0. All pretokenizers cut such words so, but o200k looks at capitals and
/// apostrophes.
inline size_t ascii_word_length(WordBlock block) {
  uint64_t low = non_letters(block.low);
  if ((block.low & 0xFF) == ' ') low &= ~uint64_t(0xFF);
  uint64_t high = non_letters(block.high);
  size_t length = low ? size_t(std::countr_zero(low)) / 8 : 8 + size_t(std::countr_zero(high | uint64_t(1) << 63)) / 8;
  bool found = low || high;
  bool lone_space = length == 1 && (block.low & 0xFF) == ' ';
  return found && byte_at(block, length) < 0x80 && !lone_space ? length : 0;
}

/// Whether the word that ascii_word_length() found ends there for o200k too: no capital but the first letter, and no
/// apostrophe behind it.
inline bool ends_there_when_cased(WordBlock block, size_t length) {
  constexpr uint64_t kCaseBits = 0x2020202020202020u;  // set in small letters and in a space
  WordBlock capitals = word_key({~block.low & kCaseBits, ~block.high & kCaseBits}, length);
  uint64_t first_letter = (block.low & 0xFF) == ' ' ? 0xFF00 : 0xFF;
  uint64_t after_first = (capitals.low & ~first_letter) | (capitals.high & kCaseBits);
  return after_first == 0 && byte_at(block, length) != '\'';
}

}  // namespace tokamak
