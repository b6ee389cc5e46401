// Rotary positions, ops/rotary.h. The text before this says Element, kHeads, kGroup (heads that share keys and values),
// kHeadDim, kPositions (numbers of positions), kVector (columns of a thread) and kFrequencies[kHeadDim / 2]. A row is a
// token: q and dq (rows, kHeads x kHeadDim), k, v and their gradients (rows, kHeads / kGroup x kHeadDim), qkv and dqkv
// (rows, 3 x kHeads x kHeadDim).
#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

constexpr int kHalf = kHeadDim / 2, kShared = kHeads / kGroup, kPieces = kHalf / kVector;
constexpr int64_t kWidth = int64_t(kHeads) * kHeadDim;

using Columns = Vector<Element, kVector>;

__device__ inline Columns load(const Element* from) { return *reinterpret_cast<const Columns*>(from); }
__device__ inline void store(Element* to, const Columns& columns) { *reinterpret_cast<Columns*>(to) = columns; }

/// What turns columns i to i + kVector of a row and those kHalf further; once for all heads.
struct Turn {
  float cos[kVector], sin[kVector];
  __device__ Turn(const int32_t* positions, int64_t row, int i) {
    float position = float(positions[row % kPositions]);
#pragma unroll
    for (int c = 0; c < kVector; ++c) sincosf(__fmul_rn(position, kFrequencies[i + c]), &sin[c], &cos[c]);
  }
  __device__ void turn(const Element* from, Element* to) const {
    Columns a = load(from), b = load(from + kHalf), early, late;
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      float x = to_float(a[c]), y = to_float(b[c]);
      from_float(x * cos[c] - y * sin[c], early[c]);
      from_float(y * cos[c] + x * sin[c], late[c]);
    }
    store(to, early);
    store(to + kHalf, late);
  }
};

/// The gradients of the same columns, which are turned back.
struct Sums {
  float early[kVector] = {}, late[kVector] = {};
  __device__ void add_turned(const Element* from, const Turn& turn) {
    Columns a = load(from), b = load(from + kHalf);
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      float x = to_float(a[c]), y = to_float(b[c]);
      early[c] += x * turn.cos[c] + y * turn.sin[c];
      late[c] += y * turn.cos[c] - x * turn.sin[c];
    }
  }
  __device__ void add(const Element* from) {
    Columns a = load(from), b = load(from + kHalf);
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      early[c] += to_float(a[c]);
      late[c] += to_float(b[c]);
    }
  }
  __device__ void write(Element* to) const {
    Columns a, b;
#pragma unroll
    for (int c = 0; c < kVector; ++c) {
      from_float(early[c], a[c]);
      from_float(late[c], b[c]);
    }
    store(to, a);
    store(to + kHalf, b);
  }
};

/// A thread's place: a row, a head of keys with the heads that share it, and columns of them.
struct Place {
  int64_t row, kv, q;  // kv and q: where its columns begin in k, and in q of the first head
  int i;
  __device__ explicit Place(int64_t thread) {
    i = int(thread % kPieces) * kVector;
    int head = int(thread / kPieces % kShared);
    row = thread / kPieces / kShared;
    kv = (row * kShared + head) * kHeadDim + i;
    q = row * kWidth + int64_t(head) * kGroup * kHeadDim + i;
  }
  /// In qkv, of the first head.
  __device__ int64_t qkv() const { return q + 2 * row * kWidth; }
};

}  // namespace tokamak

extern "C" __global__ void __launch_bounds__(256)
    rotary(const tokamak::Element* __restrict__ q, const tokamak::Element* __restrict__ k,
           const tokamak::Element* __restrict__ v, const int32_t* __restrict__ positions,
           tokamak::Element* __restrict__ qkv, int64_t threads) {
  using namespace tokamak;
  begin_kernel();
  int64_t thread = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (thread >= threads) return;
  Place at(thread);
  Turn turn(positions, at.row, at.i);
  Columns early = load(v + at.kv), late = load(v + at.kv + kHalf);
  Element* to = qkv + at.qkv();
  for (int h = 0; h < kGroup; ++h, to += kHeadDim) {
    turn.turn(q + at.q + h * kHeadDim, to);
    turn.turn(k + at.kv, to + kWidth);
    store(to + 2 * kWidth, early);
    store(to + 2 * kWidth + kHalf, late);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    rotary_grad(const tokamak::Element* __restrict__ dqkv, const int32_t* __restrict__ positions,
                tokamak::Element* __restrict__ dq, tokamak::Element* __restrict__ dk, tokamak::Element* __restrict__ dv,
                int64_t threads) {
  using namespace tokamak;
  begin_kernel();
  int64_t thread = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (thread >= threads) return;
  Place at(thread);
  Turn turn(positions, at.row, at.i);
  Sums of_k, of_v;
  const Element* from = dqkv + at.qkv();
  for (int h = 0; h < kGroup; ++h, from += kHeadDim) {
    Sums of_q;
    of_q.add_turned(from, turn);
    of_q.write(dq + at.q + h * kHeadDim);
    of_k.add_turned(from + kWidth, turn);
    of_v.add(from + 2 * kWidth);
  }
  of_k.write(dk + at.kv);
  of_v.write(dv + at.kv);
}
