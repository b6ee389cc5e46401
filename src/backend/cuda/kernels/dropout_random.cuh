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
  int32_t columns;  // fours of them: j, j + 1, j + 8 and j + 9

  MatrixRandom() = default;
  /// rng is (seed, step); `columns` are those of each matrix.
  __device__ MatrixRandom(const int32_t* rng, uint64_t stream, int columns) : columns((columns + 15) / 16 * 4) {
    uint4 words = philox_words<10>(rng, 0, stream);
    key = words.x, high = words.y;
  }

  /// The words x and y of the place that at() gives.
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
  /// The place of (i, j), where i % 16 and j % 16 are below 8 and j is even.
  __device__ uint32_t at(int i, int j) const { return half(i) * uint32_t(columns) + half(j) / 2; }

  /// One element's, in [0, 2^15).
  __device__ uint32_t number(uint32_t matrix, int i, int j) const {
    uint2 words = draw(matrix, at(i & ~8, j & ~9));
    int half = (j & 1) * 16, own = j & 8 ? 0 : 8;
    uint32_t high = (i & 8 ? words.y : words.x) >> (half + own) & 0x7f;
    return high << 8 | ((words.x ^ words.y) >> (half + 8 - own) & 0xff);
  }

 private:
  static __device__ uint32_t half(int i) { return uint32_t(i / 16 * 8 + i % 8); }
};

}  // namespace tokamak
