// Rotary positions, ops/rotary.h. The text before this says Element, kHeads, kGroup (heads that share keys and values),
// kHeadDim, kPositions (numbers of positions), kVector (columns of a thread), kStrideQ and kStrideKv (elements from a
// row of q, and of k and v, to the next), kInPlace and kFrequencies[kHeadDim / 2]. A row is a token: q and dq (rows,
// kHeads x kHeadDim), k, v and their gradients (rows, kHeads / kGroup x kHeadDim), qkv and dqkv (rows, 3 x kHeads x
// kHeadDim). In place q, k and v are where qkv is, which a thread reads before it writes; v stays as it is.
#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

constexpr int kHalf = kHeadDim / 2, kShared = kHeads / kGroup, kPieces = kHalf / kVector;
constexpr int64_t kWidth = int64_t(kHeads) * kHeadDim;

using Columns = Vector<Element, kVector>;

/// kVector columns of a row and those kHalf further.
struct Pair {
  Columns early, late;
};
__device__ inline Pair load(const Element* from) {
  return {*reinterpret_cast<const Columns*>(from), *reinterpret_cast<const Columns*>(from + kHalf)};
}
__device__ inline void store(Element* to, const Pair& pair) {
  *reinterpret_cast<Columns*>(to) = pair.early;
  *reinterpret_cast<Columns*>(to + kHalf) = pair.late;
}

/// What turns columns i to i + kVector of a row and those kHalf further; once for all heads.
struct Turn {
  float cos[kVector], sin[kVector];
  __device__ Turn(const int32_t* positions, int64_t row, int i) {
    float position = float(positions[row % kPositions]);
#pragma unroll
    for (int c = 0; c < kVector; ++c) sincosf(__fmul_rn(position, kFrequencies[i + c]), &sin[c], &cos[c]);
  }
  __device__ Pair of(const Pair& from) const {
    Pair turned;
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      float x = to_float(from.early[c]), y = to_float(from.late[c]);
      from_float(x * cos[c] - y * sin[c], turned.early[c]);
      from_float(y * cos[c] + x * sin[c], turned.late[c]);
    }
    return turned;
  }
};

/// The gradients of the same columns, which are turned back.
struct Sums {
  float early[kVector] = {}, late[kVector] = {};
  __device__ void add_turned(const Pair& from, const Turn& turn) {
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      float x = to_float(from.early[c]), y = to_float(from.late[c]);
      early[c] += x * turn.cos[c] + y * turn.sin[c];
      late[c] += y * turn.cos[c] - x * turn.sin[c];
    }
  }
  __device__ void add(const Pair& from) {
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      early[c] += to_float(from.early[c]);
      late[c] += to_float(from.late[c]);
    }
  }
  __device__ void write(Element* to) const {
    Pair pair;
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      from_float(early[c], pair.early[c]);
      from_float(late[c], pair.late[c]);
    }
    store(to, pair);
  }
};

/// A thread's place: a row, a head of keys with the heads that share it, and columns of them.
struct Place {
  int64_t row, kv, q, qkv;  // where its columns begin in k, and in q and qkv of the first head
  int i;
  __device__ explicit Place(int64_t thread) {
    i = int(thread % kPieces) * kVector;
    int head = int(thread / kPieces % kShared);
    row = thread / kPieces / kShared;
    kv = row * kStrideKv + head * kHeadDim + i;
    q = row * kStrideQ + head * kGroup * kHeadDim + i;
    qkv = row * 3 * kWidth + head * kGroup * kHeadDim + i;
  }
};

}  // namespace tokamak

extern "C" __global__ void __launch_bounds__(256)
    rotary(const tokamak::Element* q, const tokamak::Element* k, const tokamak::Element* v,
           const int32_t* __restrict__ positions, tokamak::Element* qkv, int64_t threads) {
  using namespace tokamak;
  begin_kernel();
  int64_t thread = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (thread >= threads) return;
  Place at(thread);
  Turn turn(positions, at.row, at.i);
  Element* to = qkv + at.qkv;
  Pair of_q = load(q + at.q), of_k = load(k + at.kv), of_v;
  if constexpr (!kInPlace) of_v = load(v + at.kv);
  of_k = turn.of(of_k);
  for (int h = 0; h < kGroup; ++h, to += kHeadDim) {
    if (h > 0) of_q = load(q + at.q + h * kHeadDim);
    store(to, turn.of(of_q));
    store(to + kWidth, of_k);
    if constexpr (!kInPlace) store(to + 2 * kWidth, of_v);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    rotary_grad(const tokamak::Element* dqkv, const int32_t* __restrict__ positions, tokamak::Element* dq,
                tokamak::Element* dk, tokamak::Element* dv, int64_t threads) {
  using namespace tokamak;
  begin_kernel();
  int64_t thread = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (thread >= threads) return;
  Place at(thread);
  Turn turn(positions, at.row, at.i);
  Sums of_k, of_v;
  const Element* from = dqkv + at.qkv;
  for (int h = 0; h < kGroup; ++h, from += kHeadDim) {
    Pair q = load(from), k = load(from + kWidth);
    if constexpr (!kInPlace) of_v.add(load(from + 2 * kWidth));
    Sums of_q;
    of_q.add_turned(q, turn);
    of_q.write(dq + at.q + h * kHeadDim);
    of_k.add_turned(k, turn);
  }
  of_k.write(dk + at.kv);
  if constexpr (!kInPlace) of_v.write(dv + at.kv);
}
