#include "base/checksum.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace tokamak {

namespace {

// The five primes of the specification.
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

template <typename Word>
uint64_t read_word(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint64_t mix_word(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

void mix_stripe(std::array<uint64_t, 4>& lanes, const std::byte* at) {
  for (size_t i = 0; i < 4; ++i) lanes[i] = mix_word(lanes[i], read_word<uint64_t>(at + 8 * i));
}

}  // namespace

void Checksum::update(std::span<const std::byte> bytes) {
  size_t held = length_ % tail_.size();
  length_ += bytes.size();
  if (held > 0) {
    size_t taken = std::min(tail_.size() - held, bytes.size());
    std::copy_n(bytes.begin(), taken, tail_.begin() + held);
    bytes = bytes.subspan(taken);
    if (held + taken < tail_.size()) return;
    mix_stripe(lanes_, tail_.data());
  }
  for (; bytes.size() >= tail_.size(); bytes = bytes.subspan(tail_.size())) mix_stripe(lanes_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), tail_.begin());
}

uint64_t Checksum::digest() const {
  uint64_t hash = kPrime5;
  if (length_ >= tail_.size()) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) hash = (hash ^ mix_word(0, lane)) * kPrime1 + kPrime4;
  }
  hash += length_;
  const std::byte* at = tail_.data();
  const std::byte* end = at + length_ % tail_.size();
  for (; end - at >= 8; at += 8) hash = std::rotl(hash ^ mix_word(0, read_word<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  for (; end - at >= 4; at += 4) hash = std::rotl(hash ^ read_word<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; at < end; ++at) hash = std::rotl(hash ^ uint64_t(*at) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.update(bytes);
  return sum.digest();
}

std::string format_checksum(uint64_t digest) { return fmt::format("xxh64:{:016x}", digest); }

}  // namespace tokamak
