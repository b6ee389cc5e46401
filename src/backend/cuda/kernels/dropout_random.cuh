// The random numbers of base/dropout_random.h on the device: the same bits.
#pragma once

#include "backend/cuda/kernels/philox.cuh"

namespace tokamak {

/// Of what a rank's elements were part before a cut: ElementPlace (ops/element_place.h), one step of it.
template <typename Index, bool kMirrored>
__device__ inline Index undo_cut(Index i, Index pieces, Index length, int32_t coordinate) {
  Index block = i / length, piece = Index(coordinate);
  if (kMirrored && block % 2 == 1) piece = pieces - 1 - piece;
  return (block * pieces + piece) * length + i % length;
}

/// The number in the low (0) or the high (1) half of a word, as a multiple of 2^-15 in [0, 1).
__device__ inline float uniform_half(uint32_t word, int half) { return float((word >> half * 16) & 0x7fff) * 0x1p-15f; }

/// That of one element of the tensor `stream`.
__device__ inline float uniform_element(const int32_t* rng, int64_t element, uint64_t stream) {
  uint4 words = philox_words<7>(rng, element / 8, stream);
  int lane = int(element % 8);
  uint32_t word = lane < 2 ? words.x : lane < 4 ? words.y : lane < 6 ? words.z : words.w;
  return uniform_half(word, lane % 2);
}

struct MatrixRandom {
  uint32_t key, high;
  int32_t columns;  // pairs of them, 8 apart

  MatrixRandom() = default;
  /// rng is (seed, step); `columns` are those of each matrix.
  __device__ MatrixRandom(const int32_t* rng, uint64_t stream, int columns) : columns((columns + 15) / 16 * 8) {
    uint4 words = philox_words<10>(rng, 0, stream);
    key = words.x, high = words.y;
  }

  /// Two words of two numbers, each in the low 15 bits of a half, of the place that at() gives: x has those of (i, j)
  /// and (i, j + 8), y those of (i + 8, j) and (i + 8, j + 8), low half first.
  __device__ uint2 draw(uint32_t matrix, uint32_t place) const {
    uint32_t c0 = place, c1 = high ^ matrix, k = key;
#pragma unroll
    for (int round = 0; round < 7; ++round) {
      uint64_t product = uint64_t(0xD256D193u) * c0;
      c0 = uint32_t(product >> 32) ^ k ^ c1;
      c1 = uint32_t(product);
      k += 0x9E3779B9u;
    }
    return {c0, c1};
  }
  /// The place of (i, j), where i % 16 and j % 16 are below 8.
  __device__ uint32_t at(int i, int j) const { return half(i) * uint32_t(columns) + half(j); }

  /// One element's, in [0, 2^15).
  __device__ uint32_t number(uint32_t matrix, int i, int j) const {
    uint2 words = draw(matrix, at(i & ~8, j & ~8));
    return ((i & 8 ? words.y : words.x) >> (j & 8 ? 16 : 0)) & 0x7fff;
  }

 private:
  static __device__ uint32_t half(int i) { return uint32_t(i / 16 * 8 + i % 8); }
};

}  // namespace tokamak
