// Kernels of a chain (backend/chained.h): each begins while those before it still run, and waits for the values that it
// reads. A value is there when not all of its bits are ones, which no number that a kernel stores is made of.
#pragma once

#include "backend/cuda/kernels/begin_kernel.cuh"
#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

/// What a link makes empty again.
struct Emptied {
  uint4* at;
  int64_t vectors;
};

/// In place of begin_kernel(), where values are awaited: the next kernel may be launched once all blocks of this one
/// are here. So a kernel that awaits never keeps blocks of those before it from a multiprocessor.
#if __CUDA_ARCH__ >= 900
__device__ inline void begin_link() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ inline void wait_for_kernels() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
__device__ inline void begin_link() {}
__device__ inline void wait_for_kernels() {}
#endif

/// At the end of a link. One that awaits ends after those before it, so that whoever waits for it has waited for them.
template <bool kAwaits>
__device__ inline void end_link(const Emptied& emptied, int64_t thread, int64_t threads) {
  if constexpr (kAwaits)
    wait_for_kernels();
  else
    for (int64_t i = thread; i < emptied.vectors; i += threads) emptied.at[i] = {~0u, ~0u, ~0u, ~0u};
}

/// Whether an element of T in the word is empty.
template <typename T>
__device__ inline bool has_empty(uint32_t word) {
  if constexpr (sizeof(T) == 4) return word == ~0u;
  uint32_t inverse = ~word;  // is a half of it 0?
  return ((inverse - 0x00010001u) & ~inverse & 0x80008000u) != 0;
}

template <typename T>
__device__ inline bool has_empty(const uint4& v) {
  return has_empty<T>(v.x) || has_empty<T>(v.y) || has_empty<T>(v.z) || has_empty<T>(v.w);
}

__device__ inline uint4 peek(const void* from) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

/// 16 bytes of elements each, asked for all at once, and then again one by one, as the last ones are there last.
template <typename T, int N>
__device__ inline void await_vectors(const T* const (&from)[N], uint4 (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = peek(from[i]);
#pragma unroll
  for (int i = 0; i < N; ++i)
    while (has_empty<T>(to[i])) to[i] = peek(from[i]);
}

template <typename T>
__device__ inline T await_element(const T* from) {
  T x;
  if constexpr (sizeof(T) == 4) {
    uint32_t word;
    do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    while (word == ~0u);
    x = reinterpret_cast<const T&>(word);
  } else {
    uint16_t half;
    do asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(half) : "l"(from) : "memory");
    while (half == 0xffff);
    x = reinterpret_cast<const T&>(half);
  }
  return x;
}

/// `count` elements each, of whole vectors, to shared memory; the block has to wait before it reads them.
template <int kThreads, typename T, int N>
__device__ inline void await_all(const T* const (&from)[N], T* const (&to)[N], int count) {
  constexpr int kVector = 16 / int(sizeof(T));
#pragma unroll 1
  for (int at = int(threadIdx.x) * kVector; at < count; at += kThreads * kVector) {
    const T* mine[N];
    uint4 v[N];
#pragma unroll
    for (int i = 0; i < N; ++i) mine[i] = from[i] + at;
    await_vectors(mine, v);
#pragma unroll
    for (int i = 0; i < N; ++i) *reinterpret_cast<uint4*>(to[i] + at) = v[i];
  }
}

/// For those who await it.
template <typename T>
__device__ inline void hand_over(const T& x, T* to) {
  if constexpr (sizeof(T) == 4)
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(reinterpret_cast<const uint32_t&>(x)) : "memory");
  else
    asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" ::"l"(to), "h"(reinterpret_cast<const uint16_t&>(x)) : "memory");
}

}  // namespace tokamak
