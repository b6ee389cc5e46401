// Counter-based random numbers of dropout, of 15 bits: an element is dropped with probability p, rounded to a multiple
// of 2^-15, iff its number is below dropout_threshold(p), and the others are multiplied by dropout_factor(p).
//
// Attention's probabilities are numbered as elements of matrices. One draw of 64 bits gives the numbers of (i, j),
// (i, j + 8), (i + 8, j) and (i + 8, j + 8), which one thread holds both when the tensor cores have a tile of the
// matrix and when they have one of its transpose, and of the same places of j + 1, which are the thread's own in the
// former and a transposition of halves away in the latter: so forward and backward pass draw each number once. A
// number's high 7 bits are its own. Its low 8 come from others of the draw, on which it thereby depends only where its
// high bits are those of the threshold: the probability that two are dropped is that of independent ones to 2^-15.
// Philox4x32-7 and Philox2x32-7 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
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

/// The numbers of elements 8 * block to 8 * block + 7 of a tensor; key and random_stream as for uniform_element().
inline std::array<uint32_t, 8> dropout_numbers(uint64_t key, uint64_t block, uint64_t random_stream) {
  auto [a, b, c, d] = philox4x32<7>(key, block, random_stream);
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

/// The numbers of the matrices of one tensor. They repeat in a matrix of more than 2^35 elements.
class MatrixRandom {
 public:
  /// `columns` are those of each matrix; key and random_stream as for uniform_element().
  MatrixRandom(uint64_t key, uint64_t random_stream, int64_t columns)
      : words_(philox4x32(key, 0, random_stream)), columns_(uint32_t((columns + 15) / 16 * 4)) {}

  /// Those of (i, j), (i, j + 8), (i + 8, j), (i + 8, j + 8), then of the same places of j + 1, where i % 16 and j % 16
  /// are below 8 and j is even. Of the words x and y, x is of row i and y of i + 8, a half of either of j or j + 1; of
  /// a half, the high byte is the one of j and the low byte the one of j + 8.
  std::array<uint32_t, 8> draw(int64_t matrix, int64_t i, int64_t j) const {
    auto [x, y] = philox2x32(words_[0], half(i) * columns_ + half(j) / 2, words_[1] ^ uint32_t(matrix));
    std::array<uint32_t, 8> numbers;
    for (uint32_t odd = 0; odd < 2; ++odd, x >>= 16, y >>= 16) {
      uint32_t near = (x ^ y) >> 8 & 0xff, far = (x ^ y) & 0xff;
      numbers[4 * odd] = (x >> 8 & 0x7f) << 8 | far;
      numbers[4 * odd + 1] = (x & 0x7f) << 8 | near;
      numbers[4 * odd + 2] = (y >> 8 & 0x7f) << 8 | far;
      numbers[4 * odd + 3] = (y & 0x7f) << 8 | near;
    }
    return numbers;
  }
  uint32_t operator()(int64_t matrix, int64_t i, int64_t j) const {
    return draw(matrix, i & ~8, j & ~9)[size_t((j & 1) * 4 + (i & 8) / 4 + (j & 8) / 8)];
  }

 private:
  static uint32_t half(int64_t i) { return uint32_t(i / 16 * 8 + i % 8); }

  std::array<uint32_t, 4> words_;
  uint32_t columns_;  // fours of them: j, j + 1, j + 8 and j + 9
};

}  // namespace tokamak
