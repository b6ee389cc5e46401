// Weights in eight bits (ops/float8_weights.cpp): the largest element of each piece of them; then, a tile at a time,
// their copies as they are and transposed; at last, of some, the length of the longest column, whose tiles' sums of
// squares are added up in order. The largest of a weight is that of its pieces, in any order the same.
#include "backend/cuda/kernels/tensor_list.cuh"
#include "backend/cuda/kernels/turned_tile.cuh"

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
  float* longest;
  float* squares;  // sums of each column in each row of tiles; null where `longest` is
};

/// The tile of one block, and the pieces of its weight.
struct Place {
  int32_t weight, dtype;
  int32_t row, column;    // of its first element
  int32_t rows, columns;  // of the weight: multiples of 16
  int32_t first_piece, pieces;
};

// Elements of 16 bytes of the weight, which stay words until all loads are on their way.
template <typename From>
constexpr int kVector = 16 / int(sizeof(From));

template <typename From>
__device__ inline uint4 load_words(const void* weight, int64_t element) {
  return *reinterpret_cast<const uint4*>(static_cast<const From*>(weight) + element);
}

// As bf16 has them.
template <typename From>
__device__ inline void to_floats(const uint4& words, float (&x)[kVector<From>]) {
  uint32_t word[] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(From) == 4) {
      x[i] = rounded<bf16>(__uint_as_float(word[i]));
    } else {
      x[2 * i] = __uint_as_float(word[i] << 16);
      x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    }
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
__device__ inline float largest_of_thread(const void* weight, const Piece& piece) {
  float largest = 0;
  int64_t vectors = piece.count / kVector<From>;
  for (int64_t i0 = threadIdx.x; i0 < vectors; i0 += kThreads * kAhead) {
    uint4 words[kAhead] = {};
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (i0 + k * kThreads < vectors)
        words[k] = load_words<From>(weight, piece.begin + (i0 + k * kThreads) * kVector<From>);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      float x[kVector<From>];
      to_floats<From>(words[k], x);
#pragma unroll
      for (float v : x) largest = fmaxf(largest, fabsf(v));
    }
  }
  return largest;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    largest_of_weights(const Piece* pieces, const Weight* weights, float* largest) {
  tokamak::begin_kernel();
  Piece piece = pieces[blockIdx.x];
  float own = 0;
  with_weight_type(piece.dtype,
                   [&](auto zero) { own = largest_of_thread<decltype(zero)>(weights[piece.tensor].from, piece); });
  own = largest_of_block(own);
  if (threadIdx.x == 0) largest[blockIdx.x] = own;
}

// The first lowest.
__device__ inline uint32_t four_in_word(const float* x, float inverse) {
  uint16_t low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x[1] * inverse), "f"(x[0] * inverse));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x[3] * inverse), "f"(x[2] * inverse));
  return low | uint32_t(high) << 16;
}

template <typename From>
__device__ inline void add_squares(const uint4& words, float (&sums)[kVector<From>]) {
  float x[kVector<From>];
  to_floats<From>(words, x);
#pragma unroll
  for (int i = 0; i < kVector<From>; ++i) sums[i] = fmaf(x[i], x[i], sums[i]);
}

template <typename From>
using Made = Vector<uint32_t, kVector<From> / 4>;

template <typename From>
__device__ inline Made<From> cast_elements(const uint4& words, float inverse) {
  float x[kVector<From>];
  to_floats<From>(words, x);
  Made<From> made;
#pragma unroll
  for (int w = 0; w < kVector<From> / 4; ++w) made[w] = four_in_word(x + 4 * w, inverse);
  return made;
}

// To the plain copy at once, and into the tile where there is a transposed one. `squares` has the sums of each column
// in the rows of each row of threads.
template <typename From>
__device__ inline void cast_tile(const Place& place, const Weight& weight, float inverse, Tile& tile, float* squares) {
  constexpr int kAcross = Tile::kSide / kVector<From>, kRows = kThreads / kAcross;
  constexpr int kInPiece = Tile::kPiece / kVector<From>;
  int v = int(threadIdx.x) % kAcross, column = place.column + v * kVector<From>;
  if (column >= place.columns) return;
  float sums[kVector<From>] = {};
  for (int row0 = int(threadIdx.x) / kAcross; row0 < Tile::kSide; row0 += kRows * kAhead) {
    int64_t at = int64_t(place.row + row0) * place.columns + column;
    int64_t step = int64_t(kRows) * place.columns;
    uint4 words[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (place.row + row0 + k * kRows < place.rows) words[k] = load_words<From>(weight.from, at + k * step);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      int row = row0 + k * kRows;
      if (place.row + row >= place.rows) break;
      if (weight.squares) add_squares<From>(words[k], sums);
      Made<From> made = cast_elements<From>(words[k], inverse);
      if (weight.plain) *reinterpret_cast<Made<From>*>(weight.plain + at + k * step) = made;
      if (weight.turned) reinterpret_cast<Made<From>*>(&tile.piece(row, v / kInPiece))[v % kInPiece] = made;
    }
  }
  if (!weight.squares) return;
#pragma unroll
  for (int i = 0; i < kVector<From>; ++i)
    squares[int(threadIdx.x) / kAcross * Tile::kSide + v * kVector<From> + i] = sums[i];
}

// Of the rows of threads, in order.
template <typename From>
__device__ inline void store_squares(const Place& place, const Weight& weight, const float* squares) {
  constexpr int kRows = kThreads * kVector<From> / Tile::kSide;
  int column = int(threadIdx.x);
  if (column >= Tile::kSide || place.column + column >= place.columns) return;
  float sum = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) sum += squares[r * Tile::kSide + column];
  weight.squares[int64_t(place.row / Tile::kSide) * place.columns + place.column + column] = sum;
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
  __shared__ float squares[kThreads * kVector<bf16>];
  Place place = places[blockIdx.x];
  Weight weight = weights[place.weight];
  float own = 0;
  for (int i = int(threadIdx.x); i < place.pieces; i += kThreads) own = fmaxf(own, largest[place.first_piece + i]);
  float limit = fmaxf(largest_of_block(own), kLeast);
  if (threadIdx.x == 0 && place.row == 0 && place.column == 0) *weight.scale = __fdiv_rn(limit, kLargest);
  with_weight_type(place.dtype, [&](auto zero) {
    using From = decltype(zero);
    // Rounded as on a host, though other kernels divide faster: else some elements are rounded the other way.
    cast_tile<From>(place, weight, __fdiv_rn(kLargest, limit), tile, squares);
    __syncthreads();
    if (weight.squares) store_squares<From>(place, weight, squares);
  });
  if (weight.turned) store_turned(place, weight, tile);
}

// A block for each weight of which it is asked.
extern "C" __global__ void __launch_bounds__(kThreads) longest_columns(const Place* places, const Weight* weights) {
  tokamak::begin_kernel();
  Place place = places[blockIdx.x];
  Weight weight = weights[place.weight];
  int tiles = (place.rows + Tile::kSide - 1) / Tile::kSide;
  float own = 0;
  for (int column = 4 * int(threadIdx.x); column < place.columns; column += 4 * kThreads) {
    float4 sum = {};
#pragma unroll 4
    for (int t = 0; t < tiles; ++t) {
      float4 more = *reinterpret_cast<const float4*>(weight.squares + int64_t(t) * place.columns + column);
      sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
    }
    own = fmaxf(own, fmaxf(fmaxf(sum.x, sum.y), fmaxf(sum.z, sum.w)));
  }
  own = largest_of_block(own);
  if (threadIdx.x == 0) *weight.longest = sqrtf(own);
}
