// What the kernels of attention share: tiles of kBlock rows of one head in shared memory, as floats, and the products
// of two tiles. A block has 16 x 16 threads; thread (tx, ty) holds rows ty + 16 r of a result, and of those the columns
// tx + 16 s of scores and 4 (tx + 16 g) .. + 3 of a tile. The text before this says Element, kHeadDim, kBlock (a
// multiple of 16), kCausal, kDropout, kDocuments and kRanks, and defines matrix_in_whole(): by which number dropout
// knows a head of this rank. Legend: B batch, T time, H heads, D head_dim, C = H * D; qkv is (B, T, 3C) with q | k | v.
// Where kRanks are several, a rank's T rows of a sample are in a zig-zag, kv is (kRanks B, T, 2C), dq (B, T, C), and
// attention is causal. i are queries, rows of the rank; j keys, positions in the sequence.
#pragma once

#include "backend/cuda/kernels/dropout_random.cuh"
#include "backend/cuda/kernels/vectors.cuh"
#include "backend/cuda/kernels/zigzag.cuh"

namespace tokamak {

constexpr int kWidth = (kHeadDim + 7) / 8 * 8;  // columns of a tile; those behind kHeadDim are zero
// Rows begin 4 banks apart (modulo 8 rows), so that 8 lanes read 16 bytes of 8 rows without conflict.
constexpr int kStride = kWidth + 4, kScoreStride = kBlock + 4;
constexpr int kTile = kBlock * kStride;  // floats
constexpr int kPerThread = kBlock / 16, kGroups = (kWidth + 63) / 64;

using Scores = float[kPerThread][kPerThread];
using Rows = float[kPerThread][kGroups][4];

/// As AttentionArguments in backend/cuda/blocked_attention.cpp.
struct Arguments {
  int32_t time, heads;
  float scale, kept;   // kept: dropout's factor
  uint32_t threshold;  // of dropout
  uint64_t stream;
  const int32_t* rng;
  const int32_t* documents;  // (B, T): the first position of each one's document; ascending along T
  const int32_t* rank;       // where kRanks are several
  __device__ ZigZag zigzag() const { return {time, kRanks > 1 ? __ldg(rank) : 0}; }
};

/// Where the block's head, (blockIdx.z, blockIdx.y) of (B, H), begins in the tensors, in elements.
struct Head {
  ZigZag zigzag;
  int64_t width, packed, keys;  // of the rows of (B, T, C), of qkv, and of what has keys and values
  int64_t out, q, k, v;         // in (B, T, C); in qkv; in what has keys and values, of which the first are keys
  int64_t dq, dq_width;
  int64_t lse;  // in (B, H, T)
  __device__ explicit Head(const Arguments& a) : zigzag(a.zigzag()) {
    width = int64_t(a.heads) * kHeadDim;
    packed = 3 * width;
    keys = kRanks > 1 ? 2 * width : packed;
    dq_width = kRanks > 1 ? width : packed;
    int64_t first = int64_t(blockIdx.z) * a.time, column = int64_t(blockIdx.y) * kHeadDim;
    out = first * width + column;
    q = first * packed + column;
    k = first * keys + column;
    v = k + width;
    dq = first * dq_width + column;
    lse = (int64_t(blockIdx.z) * a.heads + blockIdx.y) * a.time;
  }
};

/// Rows of a head that lie `stride` elements apart, and of its keys or values, by position, rank by rank.
template <typename T>
struct HeadRows {
  T* first;
  int64_t stride;
  __device__ T* operator()(int row) const { return first + row * stride; }
};
template <typename T>
struct KeyRows {
  T* first;
  const Head& head;
  __device__ T* operator()(int position) const {
    ZigZag::Place at = head.zigzag.place(position);
    return first + (int64_t(at.rank) * gridDim.z * head.zigzag.rows + at.row) * head.keys;
  }
};
template <typename T>
__device__ inline HeadRows<T> rows_of(T* tensor, int64_t head, int64_t stride) {
  return {tensor + head, stride};
}
template <typename T>
__device__ inline KeyRows<T> keys_of(T* tensor, int64_t first, const Head& head) {
  return {tensor + first, head};
}

__device__ inline float4* as_four(float* x) { return reinterpret_cast<float4*>(x); }
__device__ inline const float4* as_four(const float* x) { return reinterpret_cast<const float4*>(x); }
__device__ inline float lane(const float4& x, int i) { return (&x.x)[i]; }

/// Columns `column` .. + 3 of a row, zero behind the head.
__device__ inline float4 load_four(const Element* row, int column) {
  float x[4] = {0, 0, 0, 0};
  if constexpr (kHeadDim % 4 == 0) {
    if (column < kHeadDim) load_floats<4>(row + column, x);
  } else {
    for (int k = 0; k < 4; ++k)
      if (column + k < kHeadDim) x[k] = to_float(row[column + k]);
  }
  return {x[0], x[1], x[2], x[3]};
}

/// Rows first .. first + kBlock - 1 of a head; zeros from row `count` on.
template <typename From>
__device__ inline void load_tile(float* tile, const From& rows, int first, int count) {
  constexpr int kFours = kWidth / 4;
  for (int i = threadIdx.y * 16 + threadIdx.x; i < kBlock * kFours; i += 256) {
    int row = i / kFours, column = i % kFours * 4;
    float4 x{0, 0, 0, 0};
    if (first + row < count) x = load_four(rows(first + row), column);
    *as_four(tile + row * kStride + column) = x;
  }
}

/// The block's result, times `factor` of each of the thread's rows.
template <typename To>
__device__ inline void store_rows(const To& to_rows, int first, int count, const Rows& rows, const float* factor) {
#pragma unroll
  for (int r = 0; r < kPerThread; ++r) {
    int row = first + threadIdx.y + 16 * r;
    if (row >= count) continue;
    Element* to_row = to_rows(row);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      int column = 4 * (threadIdx.x + 16 * g);
      float x[4];
      for (int k = 0; k < 4; ++k) x[k] = rows[r][g][k] * factor[r];
      Element* to = to_row + column;
      if constexpr (kHeadDim % 4 == 0) {
        if (column < kHeadDim) store_floats<4>(to, x);
      } else {
        for (int k = 0; k < 4; ++k)
          if (column + k < kHeadDim) from_float(x[k], to[k]);
      }
    }
  }
}

/// scores = a b^T.
__device__ inline void dot_tiles(const float* a, const float* b, Scores& scores) {
  for (int r = 0; r < kPerThread; ++r)
    for (int s = 0; s < kPerThread; ++s) scores[r][s] = 0;
#pragma unroll 4
  for (int c = 0; c < kWidth; c += 4) {
    float4 x[kPerThread], y[kPerThread];
#pragma unroll
    for (int r = 0; r < kPerThread; ++r) {
      x[r] = *as_four(a + (threadIdx.y + 16 * r) * kStride + c);
      y[r] = *as_four(b + (threadIdx.x + 16 * r) * kStride + c);
    }
#pragma unroll
    for (int r = 0; r < kPerThread; ++r)
#pragma unroll
      for (int s = 0; s < kPerThread; ++s)
#pragma unroll
        for (int k = 0; k < 4; ++k) scores[r][s] = fmaf(lane(x[r], k), lane(y[s], k), scores[r][s]);
  }
}

/// sum += scores b; scores are kBlock x kBlock in shared memory.
__device__ inline void add_product(const float* scores, const float* b, Rows& sum) {
#pragma unroll 2
  for (int c = 0; c < kBlock; c += 4) {
    float4 x[kPerThread];
#pragma unroll
    for (int r = 0; r < kPerThread; ++r) x[r] = *as_four(scores + (threadIdx.y + 16 * r) * kScoreStride + c);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        int column = 4 * (threadIdx.x + 16 * g);
        if (column >= kWidth) continue;
        float4 y = *as_four(b + (c + k) * kStride + column);
#pragma unroll
        for (int r = 0; r < kPerThread; ++r)
#pragma unroll
          for (int e = 0; e < 4; ++e) sum[r][g][e] = fmaf(lane(x[r], k), lane(y, e), sum[r][g][e]);
      }
  }
}

__device__ inline void clear(Rows& rows) {
  for (int r = 0; r < kPerThread; ++r)
    for (int g = 0; g < kGroups; ++g)
      for (int e = 0; e < 4; ++e) rows[r][g][e] = 0;
}

/// Where the document of row i begins, in the block's sample; 0 without documents.
__device__ inline int document_of(const Arguments& a, int i) {
  return kDocuments ? __ldg(a.documents + int64_t(blockIdx.z) * a.time + i) : 0;
}

/// Whether query i sees key j.
__device__ inline bool sees(const Arguments& a, const Head& head, int i, int j) {
  if (i >= a.time || j >= head.zigzag.positions() || (kCausal && j > head.zigzag.position(i))) return false;
  return !kDocuments || (j >= document_of(a, i) && (kCausal || i >= document_of(a, j)));
}

/// The first block of keys that the queries from `first` on see, and the last one that a block of queries from there on
/// sees.
__device__ inline int first_keys(const Arguments& a, int first) { return document_of(a, first) / kBlock; }
__device__ inline int last_keys(const Arguments& a, const Head& head, int first) {
  int last = kCausal ? min(first + kBlock, a.time) : a.time;
  return head.zigzag.position(last - 1) / kBlock;
}

/// Dropout of the probabilities of the block's head.
struct Dropout {
  const Arguments& a;
  ZigZag zigzag;
  MatrixRandom random;
  uint32_t matrix = 0;
  __device__ Dropout(const Arguments& arguments, const Head& head) : a(arguments), zigzag(head.zigzag) {
    if constexpr (!kDropout) return;
    random = MatrixRandom(a.rng, a.stream, zigzag.positions());
    matrix = matrix_in_whole(a.rng, blockIdx.z * gridDim.y + blockIdx.y);
  }
  /// 0 where the probability of (i, j) is dropped, else the factor of those that are kept.
  __device__ float factor(int i, int j) const {
    if constexpr (!kDropout) return 1;
    return random.number(matrix, zigzag.position(i), j) < a.threshold ? 0.0f : a.kept;
  }
};

/// Place of an element of a kBlock x kBlock matrix in shared memory.
__device__ inline int score_at(int r, int s) { return (threadIdx.y + 16 * r) * kScoreStride + threadIdx.x + 16 * s; }

}  // namespace tokamak
