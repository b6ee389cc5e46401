// Counter-based random numbers of dropout, of 15 bits: an element is dropped with probability p, rounded to a multiple
// of 2^-15, iff its number is below dropout_threshold(p), and the others are multiplied by dropout_factor(p).
//
// Attention's probabilities are numbered as elements of matrices. One draw gives the numbers of (i, j), (i, j + 8),
// (i + 8, j) and (i + 8, j + 8), which one thread holds both when the tensor cores have a tile of the matrix and when
// they have one of its transpose: so forward and backward pass draw each number once. Philox4x32-7 and Philox2x32-7 of
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include "base/random.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

inline constexpr uint32_t kDropoutRange = 1u << 15;

inline uint32_t dropout_threshold(double p) {
  return uint32_t(std::min(std::round(p * kDropoutRange), kDropoutRange - 1.0));
}
inline double dropout_factor(double p) { return kDropoutRange / double(kDropoutRange - dropout_threshold(p)); }

/// The numbers of elements 8 * block to 8 * block + 7 of a tensor; key and stream as for uniform_element().
inline std::array<uint32_t, 8> dropout_numbers(uint64_t key, uint64_t block, uint64_t stream) {
  auto [a, b, c, d] = philox4x32<7>(key, block, stream);
  constexpr uint32_t kMask = kDropoutRange - 1;
  return {a & kMask, a >> 16 & kMask, b & kMask, b >> 16 & kMask,
          c & kMask, c >> 16 & kMask, d & kMask, d >> 16 & kMask};
}

/// Two independent 32-bit words for one counter value.
inline std::array<uint32_t, 2> philox2x32(uint32_t key, uint32_t c0, uint32_t c1) {
  for (int round = 0; round < 7; ++round) {
    uint64_t product = uint64_t(0xD256D193u) * c0;
    c0 = uint32_t(product >> 32) ^ key ^ c1;
    c1 = uint32_t(product);
    key += 0x9E3779B9u;
  }
  return {c0, c1};
}

/// The numbers of the matrices of one tensor. They repeat in a matrix of more than 2^34 elements.
class MatrixRandom {
 public:
  /// `columns` are those of each matrix; key and stream as for uniform_element().
  MatrixRandom(uint64_t key, uint64_t stream, int64_t columns)
      : words_(philox4x32(key, 0, stream)), columns_(uint32_t((columns + 15) / 16 * 8)) {}

  /// Those of (i, j), (i, j + 8), (i + 8, j), (i + 8, j + 8), where i % 16 and j % 16 are below 8.
  std::array<uint32_t, 4> draw(int64_t matrix, int64_t i, int64_t j) const {
    auto [x, y] = philox2x32(words_[0], half(i) * columns_ + half(j), words_[1] ^ uint32_t(matrix));
    return {x % kDropoutRange, (x >> 16) % kDropoutRange, y % kDropoutRange, (y >> 16) % kDropoutRange};
  }
  uint32_t operator()(int64_t matrix, int64_t i, int64_t j) const {
    return draw(matrix, i & ~8, j & ~8)[size_t((i & 8) / 4 + (j & 8) / 8)];
  }

 private:
  static uint32_t half(int64_t i) { return uint32_t(i / 16 * 8 + i % 8); }

  std::array<uint32_t, 4> words_;
  uint32_t columns_;  // pairs of them, 8 apart
};

}  // namespace tokamak
