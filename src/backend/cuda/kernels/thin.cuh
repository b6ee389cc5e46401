// Products of few rows with a matrix that is read once: y (M, N) = f(a (M, K) b + bias), or addend + a b. What counts
// is to have many loads of b under way. The text before this says Element (of a and b), Output, kM, kN, kK, kThreads,
// kBias, kAddend, kFunction and finish(); kPrologue: there is no a, but make_rows(), with which each block makes it of
// RowArguments; kEarly: b may be read while the kernel before this one runs. Every sum is made in one order that does
// not depend on M. Of a link of a chain (kLinked), kAwaits: an operand is awaited, of which a (kAwaitsGiven), the addend
// (kAwaitsAddend) and what await_rows() awaits of RowArguments.
//
// No parameter is `__restrict__`: the assembler moves loads that are read-only over the wait of begin_kernel().
#pragma once

#include "backend/cuda/kernels/chain.cuh"
#include "backend/cuda/kernels/group.cuh"

namespace tokamak {

constexpr int kVector = 16 / int(sizeof(Element)), kWarps = kThreads / 32;
using Elements = Vector<Element, kVector>;

__device__ inline Elements load_elements(const Element* from) { return *reinterpret_cast<const Elements*>(from); }

/// Until here a word is only loaded: the compiler makes nothing of it before, for which it would have to wait.
__device__ inline void hold(uint32_t& word) { asm volatile("" : "+r"(word)); }
__device__ inline void hold(float& word) { asm volatile("" : "+f"(word)); }
__device__ inline void hold(bf16& x) { asm volatile("" : "+h"(x.bits)); }
__device__ inline void hold(f16& x) { asm volatile("" : "+h"(x.bits)); }

/// Rows of a in shared memory, while weights are under way: made, awaited or copied.
__device__ inline void stage_rows(const Element* given, RowArguments& arguments, Element* staged) {
  if (kAwaits && kPrologue) await_rows(arguments);
  if (kPrologue) make_rows(arguments, staged);
  if constexpr (kAwaitsGiven) {
    const Element* const from[] = {given};
    Element* const to[] = {staged};
    await_all<kThreads>(from, to, kM * kK);
  }
#pragma unroll 1
  for (int i = threadIdx.x; !kPrologue && !kAwaitsGiven && i < kM * kK / kVector; i += kThreads)
    reinterpret_cast<Elements*>(staged)[i] = load_elements(given + i * kVector);
  __syncthreads();
}

__device__ inline Output load_addend(const Output* from) { return kAwaitsAddend ? await_element(from) : *from; }

/// y may lie where the addend does.
__device__ inline void store_result(float sum, float bias, float addend, Output& y) {
  if (kBias) sum += bias;
  if (kAddend) sum += addend;
  if (kFunction) sum = finish(rounded<Output>(sum), 0.0f);
  if constexpr (kLinked) {
    Output result;
    from_float(sum, result);
    hand_over(result, &y);
  } else {
    from_float(sum, y);
  }
}

}  // namespace tokamak
