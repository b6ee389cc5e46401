// What the generated function rank_sum (nccl.h) is written with. The text before this says T, the type of elements,
// kPieces, and kSums, how many sums there may be; the text after it sum_of.
#pragma once

#include "backend/cuda/kernels/storage.cuh"

using namespace tokamak;

struct Pieces {
  const T* at[kPieces];
};

/// One of the sums, and which blocks add it. nccl/rank_sum_launch.cpp writes these, in words of 8 bytes.
struct Sum {
  Pieces pieces;
  T* to;  // may be one of the pieces
  int64_t count;
  int32_t first_block, blocks;  // 0: there is no such sum
};
struct Sums {
  Sum of[kSums];
};

/// What elements are added as: i32 as unsigned, whose sums wrap around, all else as floats.
template <typename Element>
struct Numbers {
  using Type = float;
  __device__ static float load(Element x) { return to_float(x); }
  __device__ static void store(float x, Element& y) { from_float(x, y); }
  __device__ static float stored(float x) { return rounded<Element>(x); }
};
template <>
struct Numbers<int32_t> {
  using Type = uint32_t;
  __device__ static uint32_t load(int32_t x) { return uint32_t(x); }
  __device__ static void store(uint32_t x, int32_t& y) { y = int32_t(x); }
  __device__ static uint32_t stored(uint32_t x) { return x; }
};

using Number = Numbers<T>::Type;
__device__ inline Number load(T x) { return Numbers<T>::load(x); }
__device__ inline void store(Number x, T& y) { Numbers<T>::store(x, y); }
__device__ inline Number stored(Number x) { return Numbers<T>::stored(x); }

/// Elements of a thread at a time: 16 bytes, unless they are of too many pieces for a thread's registers.
constexpr int kVector = kPieces <= 16 ? 16 / int(sizeof(T)) : 1;
using Elements = Vector<T, kVector>;

/// What all pieces have of one element, added.
__device__ Number sum_of(const Number (&x)[kPieces]);

template <int kCount>
__device__ inline void add_elements(const Pieces& pieces, T* to, int64_t at) {
  Vector<T, kCount> terms[kPieces], sum;
#pragma unroll
  for (int p = 0; p < kPieces; ++p) terms[p] = *reinterpret_cast<const Vector<T, kCount>*>(pieces.at[p] + at);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    Number x[kPieces];
#pragma unroll
    for (int p = 0; p < kPieces; ++p) x[p] = load(terms[p][i]);
    store(sum_of(x), sum[i]);
  }
  *reinterpret_cast<Vector<T, kCount>*>(to + at) = sum;
}

__device__ inline bool are_aligned(const Pieces& pieces, const T* to) {
  uint64_t bits = reinterpret_cast<uint64_t>(to);
#pragma unroll
  for (int p = 0; p < kPieces; ++p) bits |= reinterpret_cast<uint64_t>(pieces.at[p]);
  return bits % sizeof(Elements) == 0;
}

__device__ inline void add_sum(const Sum& sum, int block) {
  int64_t first = int64_t(block) * blockDim.x + threadIdx.x, apart = int64_t(sum.blocks) * blockDim.x;
  int64_t vectors = are_aligned(sum.pieces, sum.to) ? sum.count / kVector : 0;
  for (int64_t i = first; i < vectors; i += apart) add_elements<kVector>(sum.pieces, sum.to, i * kVector);
  for (int64_t i = vectors * kVector + first; i < sum.count; i += apart) add_elements<1>(sum.pieces, sum.to, i);
}

/// The block's sum is the last that begins no later.
__device__ inline void add_sums(const Sums& sums) {
  int block = int(blockIdx.x), n = 0;
  while (n + 1 < kSums && sums.of[n + 1].blocks > 0 && sums.of[n + 1].first_block <= block) ++n;
  add_sum(sums.of[n], block - sums.of[n].first_block);
}
