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
struct f8e4m3 {
  uint8_t bits;
};
struct f8e5m2 {
  uint8_t bits;
};

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(int32_t x) { return float(x); }
__device__ inline float to_float(bf16 x) { return __int_as_float(int32_t(x.bits) << 16); }
__device__ inline float to_float(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

// Compute capability 8.9 and above; the low one of two.
__device__ inline float to_float(f8e4m3 x) {
  uint32_t pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(uint16_t(x.bits)));
  return to_float(f16{uint16_t(pair)});
}
__device__ inline float to_float(f8e5m2 x) { return to_float(f16{uint16_t(x.bits << 8)}); }

// Round to nearest, ties to even.
__device__ inline void from_float(float x, float& y) { y = x; }
__device__ inline void from_float(float x, int32_t& y) { y = int32_t(x); }
__device__ inline void from_float(float x, bf16& y) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
__device__ inline void from_float(float x, f16& y) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }

// Beyond the largest number: that. Compute capability 8.9 and above.
__device__ inline void from_float(float x, f8e4m3& y) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  y.bits = uint8_t(pair);
}
__device__ inline void from_float(float x, f8e5m2& y) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  y.bits = uint8_t(pair);
}

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
