// The gated unit on a matrix of gate and up, and its gradient, ops/packed_gate.h. The text before this says Element,
// Index (an integer that counts all vectors), kHidden (columns of gate, and of up), kVector (elements that are loaded
// as one) and kVectors (of the result, or of its gradient). In the gradient dpacked may be where packed is: a thread
// reads what it writes before it does, and nothing else.
#include "backend/cuda/kernels/group.cuh"

namespace tokamak {

constexpr int kThreads = 256;
constexpr Index kRowVectors = kHidden / kVector;
using Elements = Packed<Element, kVector>;

/// Where in a matrix of both a vector of the gate begins; that of up is kHidden elements further.
__device__ inline Index gate_place(Index at) {
  return at / kRowVectors * (2 * Index(kHidden)) + at % kRowVectors * kVector;
}

}  // namespace tokamak

extern "C" __global__ void __launch_bounds__(256)
    packed_gate(const tokamak::Element* __restrict__ packed, tokamak::Element* y) {
  using namespace tokamak;
  constexpr int kPerThread = 2;  // whose loads are under way together
  begin_kernel();
  const Index first = Index(blockIdx.x) * (kThreads * kPerThread) + threadIdx.x;
  Elements gate[kPerThread], up[kPerThread];
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const Index at = first + Index(k) * kThreads;
    if (at >= kVectors) continue;
    const Element* from = packed + gate_place(at);
    gate[k] = load_packed<kVector>(from);
    up[k] = load_packed<kVector>(from + kHidden);
  }
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const Index at = first + Index(k) * kThreads;
    if (at >= kVectors) continue;
    float made[kVector];
#pragma unroll
    for (int i = 0; i < kVector; ++i) made[i] = scalar::silu(gate[k][i]) * up[k][i];
    store_vector<kVector>(y + at * kVector, made);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    packed_gate_grad(const tokamak::Element* __restrict__ dy, const tokamak::Element* packed,
                     tokamak::Element* dpacked) {
  using namespace tokamak;
  begin_kernel();
  const Index at = Index(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= kVectors) return;
  const Index place = gate_place(at);
  const Elements d = load_packed<kVector>(dy + at * kVector);
  const Elements gate = load_packed<kVector>(packed + place), up = load_packed<kVector>(packed + place + kHidden);
  float dgate[kVector], dup[kVector];
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    dgate[i] = scalar::silu_grad(gate[i], d[i] * up[i]);
    dup[i] = d[i] * scalar::silu(gate[i]);
  }
  store_vector<kVector>(dpacked + place, dgate);
  store_vector<kVector>(dpacked + place + kHidden, dup);
}
