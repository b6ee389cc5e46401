// Weights in eight bits (ops/float8_weights.cpp): the largest element of each piece of them; then, a tile at a time,
// their copies as they are and transposed. The largest of a weight is that of its pieces, in any order the same.
#include "backend/cuda/kernels/tensor_list.cuh"
#include "backend/cuda/kernels/turned_tile.cuh"
#include "backend/cuda/kernels/vectors.cuh"

using namespace tokamak;
using Tile = TurnedTile<uint8_t>;

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kAhead = 4;  // loads of a thread before it uses the first
constexpr float kLeast = 1e-30f, kLargest = 448.0f;

/// Addresses of one weight and of what is made of it; null: no such copy.
struct Weight {
  const void* from;
  uint8_t* plain;
  uint8_t* turned;
  float* scale;
};

/// The tile of one block, and the pieces of its weight.
struct Place {
  int32_t weight, dtype;
  int32_t row, column;    // of its first element
  int32_t rows, columns;  // of the weight: multiples of 16
  int32_t first_piece, pieces;
};

// 16 bytes of the weight.
template <typename From>
constexpr int kVector = 16 / int(sizeof(From));

// As bf16 has it.
template <typename From>
__device__ inline void load_rounded(const From* from, float (&x)[kVector<From>]) {
  load_floats<kVector<From>>(from, x);
  if constexpr (sizeof(From) == 4) {
#pragma unroll
    for (float& v : x) v = rounded<bf16>(v);
  }
}

// Calls work(T()) with T the type of that number, of those that weights have.
template <typename Work>
__device__ inline void with_weight_type(int32_t dtype, const Work& work) {
  dtype == kF32 ? work(float()) : work(bf16());
}

__device__ inline float largest_of_block(float own) {
  __shared__ float of_warps[kWarps];
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) own = fmaxf(own, __shfl_xor_sync(~0u, own, lanes));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  own = of_warps[threadIdx.x % kWarps];
#pragma unroll
  for (int lanes = kWarps / 2; lanes > 0; lanes /= 2) own = fmaxf(own, __shfl_xor_sync(~0u, own, lanes));
  return own;
}

template <typename From>
__device__ inline float largest_of_thread(const From* from, int64_t count) {
  float largest = 0;
  int64_t vectors = count / kVector<From>;
  for (int64_t i0 = threadIdx.x; i0 < vectors; i0 += kThreads * kAhead) {
    float x[kAhead][kVector<From>] = {};
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (i0 + k * kThreads < vectors) load_rounded(from + (i0 + k * kThreads) * kVector<From>, x[k]);
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
#pragma unroll
      for (float v : x[k]) largest = fmaxf(largest, fabsf(v));
  }
  return largest;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    largest_of_weights(const Piece* pieces, const Weight* weights, float* largest) {
  tokamak::begin_kernel();
  Piece piece = pieces[blockIdx.x];
  float own = 0;
  with_weight_type(piece.dtype, [&](auto zero) {
    using From = decltype(zero);
    own = largest_of_thread(static_cast<const From*>(weights[piece.tensor].from) + piece.begin, piece.count);
  });
  own = largest_of_block(own);
  if (threadIdx.x == 0) largest[blockIdx.x] = own;
}

// The first lowest.
__device__ inline uint32_t four_in_word(const float* x) {
  uint16_t low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x[1]), "f"(x[0]));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x[3]), "f"(x[2]));
  return low | uint32_t(high) << 16;
}

// To the plain copy at once, and into the tile where there is a transposed one.
template <typename From>
__device__ inline void cast_tile(const Place& place, const Weight& weight, float inverse, Tile& tile) {
  constexpr int kAcross = Tile::kSide / kVector<From>, kRows = kThreads / kAcross;
  using Made = Vector<uint32_t, kVector<From> / 4>;
  int v = int(threadIdx.x) % kAcross, column = place.column + v * kVector<From>;
  if (column >= place.columns) return;
  for (int row0 = int(threadIdx.x) / kAcross; row0 < Tile::kSide; row0 += kRows * kAhead) {
    int64_t at = int64_t(place.row + row0) * place.columns + column;
    float x[kAhead][kVector<From>];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (place.row + row0 + k * kRows < place.rows)
        load_rounded(static_cast<const From*>(weight.from) + at + int64_t(k * kRows) * place.columns, x[k]);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      int row = row0 + k * kRows;
      if (place.row + row >= place.rows) break;
      Made made;
#pragma unroll
      for (float& element : x[k]) element *= inverse;
#pragma unroll
      for (int w = 0; w < kVector<From> / 4; ++w) made[w] = four_in_word(x[k] + 4 * w);
      if (weight.plain) *reinterpret_cast<Made*>(weight.plain + at + int64_t(k * kRows) * place.columns) = made;
      constexpr int kInPiece = Tile::kPiece / kVector<From>;
      if (weight.turned) reinterpret_cast<Made*>(&tile.piece(row, v / kInPiece))[v % kInPiece] = made;
    }
  }
}

__device__ inline void store_turned(const Place& place, const Weight& weight, const Tile& tile) {
  int piece = int(threadIdx.x) % 8, word = int(threadIdx.x) / 8;
  uint4 columns[Tile::kWord];
  tile.turned(word, piece, columns);
  int row = place.row + piece * Tile::kPiece, column = place.column + word * Tile::kWord;
#pragma unroll
  for (int c = 0; c < Tile::kWord; ++c)
    if (row < place.rows && column + c < place.columns)
      *reinterpret_cast<uint4*>(weight.turned + int64_t(column + c) * place.rows + row) = columns[c];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    cast_weights(const Place* places, const Weight* weights, const float* largest) {
  tokamak::begin_kernel();
  __shared__ Tile tile;
  Place place = places[blockIdx.x];
  Weight weight = weights[place.weight];
  float own = 0;
  for (int i = int(threadIdx.x); i < place.pieces; i += kThreads) own = fmaxf(own, largest[place.first_piece + i]);
  float limit = fmaxf(largest_of_block(own), kLeast);
  if (threadIdx.x == 0 && place.row == 0 && place.column == 0) *weight.scale = limit / kLargest;
  with_weight_type(place.dtype, [&](auto zero) {
    cast_tile<decltype(zero)>(place, weight, kLargest / limit, tile);
  });
  if (!weight.turned) return;
  __syncthreads();
  store_turned(place, weight, tile);
}
