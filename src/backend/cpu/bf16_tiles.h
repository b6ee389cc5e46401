// Products of bf16 matrices in tiles, and the loops of attention between them, on units that only some CPUs have: AMX,
// or AVX-512 with bf16. Which of them there are is found at run time; the programs run on other CPUs too.
//
// A tile takes 1 KB, dense. Of a left operand it is 16 rows of 32 elements; of a right operand 16 pairs of rows by 16
// columns, a pair's two elements of a column side by side; of a result 16 x 16 floats. A pair of tiles is what products
// are made of, so all sides are multiples of 32. Sums are in f32, in the order of the inner dimension; numbers too
// small for normal floats count as 0. Tests: tests/backend/cpu/bf16_tiles_test.cpp.
#pragma once

#include <cstdint>

namespace tokamak::cpu {

inline constexpr int64_t kTileSide = 16, kTileDepth = 32;
inline constexpr int64_t kTileElements = 512, kTileSums = 256;  // of an operand's tile, of a result's
inline constexpr int64_t kGroup = 32;                           // what all sides are multiples of

/// Where the tiles of a matrix lie: elements from one to the next below it, and to the next beside it.
template <typename T>
struct Tiles {
  T* base;
  int64_t below, beside;
};

/// C (m, n) = A (m, k) B (k, n), or what is there and that, in elements.
struct TileProduct {
  int64_t m, n, k;
  Tiles<float> c;
  Tiles<const uint16_t> a, b;
  bool accumulate;
};

/// A thread calls enter() before its products and leave() behind them: AMX has a state of its own.
struct TileUnits {
  const char* name;
  void (*enter)();
  void (*multiply)(const TileProduct& product);
  void (*leave)();
};

/// Null where this CPU or its system has none. Those of AVX-512 also do what stands below; where there is AMX they are.
const TileUnits* amx_units();
const TileUnits* avx512_bf16_units();

/// The fastest that there are; null: none, or none that would be faster than products of f32.
const TileUnits* tile_units();

/// A right operand's tile of 32 rows by 16 columns from rows as they lie, `ld` elements apart.
void pair_rows(const uint16_t* rows, int64_t ld, uint16_t* tile);

/// 16 x 16 words of 32 bits, rows `ld` words apart, transposed into a tile: 16 rows of 32 become a right operand's tile
/// of 32 x 16, and a right operand's tile of 32 x 16 the left operand's of the transposed 16 x 32.
void transpose_words(const uint32_t* rows, int64_t ld, uint32_t* tile);

/// sums[r] of `count` rows of `width` (a multiple of 32) elements: of a's row r times b's.
void multiply_rows(const uint16_t* a, const uint16_t* b, int64_t count, int64_t width, float* sums);

/// 16 rows of bf16, `ld` apart, from a result's row of tiles, `beside` floats apart, times factor.
void round_rows(const float* tiles, int64_t beside, int64_t width, float factor, uint16_t* rows, int64_t ld);

/// The same of the transpose: from a column of tiles, `below` floats apart; row r times factors[r].
void round_columns(const float* tiles, int64_t below, int64_t width, const float* factors, uint16_t* rows, int64_t ld);

/// Of 32 queries and some keys: scores (keys, 32), transposed and in tiles, two columns of them.
struct TileSoftmax {
  const float* scores;         // (2, keys, 16)
  int64_t keys;                // a multiple of 32
  float factor;                // > 0: e^(scale s) = 2^(factor s)
  const int32_t *begin, *end;  // of each query: which keys it sees
  const float* dropout;        // factors as the scores lie; null: none
  uint16_t* probabilities;     // (2, keys / 2, 16, 2): a right operand's tiles
  float *top, *total;          // of each query: the greatest score so far and the sum of 2^(factor (s - top))
  float* sums;                 // (2, sum_rows, 16), which become relative to the new top
  int64_t sum_rows;
};
void add_softmax(const TileSoftmax& block);

/// Of 32 queries and 32 keys, in the gradient of attention.
struct TileScoreGrad {
  const float *scores, *dprobabilities;  // (2, 32, 16) each, transposed: q k^T and dO v^T
  float factor;                          // as above
  const float *lse, *delta;              // of each query: log2 of the softmax's normaliser, and rowsum(dO O)
  const int32_t *begin, *end;            // of each query: which of the keys it sees
  const float* dropout;                  // (2, 32, 16); null: none
  uint16_t *probabilities, *dscores;     // left operands' tiles (keys by queries), two, `below` apart
  int64_t below;
  uint16_t* dscores_right;  // right operands' tiles (keys by queries), two, one behind the other
};
void score_grad(const TileScoreGrad& block);

}  // namespace tokamak::cpu
