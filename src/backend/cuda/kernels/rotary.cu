// Rotary positions, ops/rotary.h. The text before this says Element, kHeads, kGroup (heads that share keys and values),
// kHeadDim, kPositions (numbers of positions) and kFrequencies[kHeadDim / 2]. A row is a token: q and dq (rows, kHeads x
// kHeadDim), k, v and their gradients (rows, kHeads / kGroup x kHeadDim), qkv and dqkv (rows, 3 x kHeads x kHeadDim).
#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

constexpr int kHalf = kHeadDim / 2, kShared = kHeads / kGroup;
constexpr int64_t kWidth = int64_t(kHeads) * kHeadDim;

/// What turns columns i and i + kHalf of a row.
struct Turn {
  float cos, sin;
  __device__ Turn(const int32_t* positions, int64_t row, int i) {
    float angle = __fmul_rn(float(positions[row % kPositions]), kFrequencies[i]);
    sincosf(angle, &sin, &cos);
  }
  __device__ void turn(const Element* from, Element* to) const {
    float a = to_float(from[0]), b = to_float(from[kHalf]);
    from_float(a * cos - b * sin, to[0]);
    from_float(b * cos + a * sin, to[kHalf]);
  }
};

/// The gradients of columns i and i + kHalf, which are turned back.
struct Sums {
  float early = 0, late = 0;
  __device__ void add_turned(const Element* from, const Turn& turn) {
    float a = to_float(from[0]), b = to_float(from[kHalf]);
    early += a * turn.cos + b * turn.sin;
    late += b * turn.cos - a * turn.sin;
  }
  __device__ void add(const Element* from) {
    early += to_float(from[0]);
    late += to_float(from[kHalf]);
  }
  __device__ void store(Element* to) const {
    from_float(early, to[0]);
    from_float(late, to[kHalf]);
  }
};

}  // namespace tokamak

// A thread per row, head and pair of columns.
extern "C" __global__ void __launch_bounds__(256)
    rotary(const tokamak::Element* __restrict__ q, const tokamak::Element* __restrict__ k,
           const tokamak::Element* __restrict__ v, const int32_t* __restrict__ positions,
           tokamak::Element* __restrict__ qkv, int64_t threads) {
  using namespace tokamak;
  begin_kernel();
  int64_t thread = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (thread >= threads) return;
  int i = int(thread % kHalf), h = int(thread / kHalf % kHeads);
  int64_t row = thread / kHalf / kHeads, kv = (row * kShared + h / kGroup) * kHeadDim + i;
  Element* to = qkv + row * 3 * kWidth + h * kHeadDim + i;
  Turn turn(positions, row, i);
  turn.turn(q + row * kWidth + h * kHeadDim + i, to);
  turn.turn(k + kv, to + kWidth);
  to[2 * kWidth] = v[kv];
  to[2 * kWidth + kHalf] = v[kv + kHalf];
}

// A thread per row, head of keys and pair of columns.
extern "C" __global__ void __launch_bounds__(256)
    rotary_grad(const tokamak::Element* __restrict__ dqkv, const int32_t* __restrict__ positions,
                tokamak::Element* __restrict__ dq, tokamak::Element* __restrict__ dk, tokamak::Element* __restrict__ dv,
                int64_t threads) {
  using namespace tokamak;
  begin_kernel();
  int64_t thread = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (thread >= threads) return;
  int i = int(thread % kHalf), k = int(thread / kHalf % kShared);
  int64_t row = thread / kHalf / kShared, kv = (row * kShared + k) * kHeadDim + i;
  const Element* from = dqkv + row * 3 * kWidth + k * kGroup * kHeadDim + i;
  Turn turn(positions, row, i);
  Sums of_k, of_v;
  for (int h = 0; h < kGroup; ++h, from += kHeadDim) {
    Sums of_q;
    of_q.add_turned(from, turn);
    of_q.store(dq + row * kWidth + (k * kGroup + h) * kHeadDim + i);
    of_k.add_turned(from + kWidth, turn);
    of_v.add(from + 2 * kWidth);
  }
  of_k.store(dk + kv);
  of_v.store(dv + kv);
}
