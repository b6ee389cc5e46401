// How elements lie in memory and how they become floats: 16 bytes at a time.
#pragma once

#include "backend/cuda/kernels/std.cuh"

namespace tokamak {

struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(int32_t x) { return float(x); }
__device__ inline float to_float(bf16 x) { return __int_as_float(int32_t(x.bits) << 16); }
__device__ inline float to_float(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

// Round to nearest, ties to even.
__device__ inline void from_float(float x, float& y) { y = x; }
__device__ inline void from_float(float x, int32_t& y) { y = int32_t(x); }
__device__ inline void from_float(float x, bf16& y) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
__device__ inline void from_float(float x, f16& y) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }

/// The value as it is after being stored as T.
template <typename T>
__device__ inline float rounded(float x) {
  T stored;
  from_float(x, stored);
  return to_float(stored);
}

/// N elements that are loaded and stored as one; N * sizeof(T) is a power of two of at most 16.
template <typename T, int N>
struct alignas(N * sizeof(T)) Vector {
  T data[N];
  __device__ T& operator[](int i) { return data[i]; }
  __device__ const T& operator[](int i) const { return data[i]; }
};

}  // namespace tokamak
