// What device code has of C++'s library: fixed-width integers, conditional_t, and the few functions that ops/scalar_math.h names. The
// standard headers themselves are empty for NVRTC (backend/cuda/nvrtc.cpp).
#pragma once

#include "backend/cuda/kernels/begin_kernel.cuh"

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;

#define HUGE_VALF __int_as_float(0x7f800000)

namespace std {

template <typename To, typename From>
__device__ To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

template <bool kFirst, typename A, typename B>
struct conditional {
  using type = A;
};
template <typename A, typename B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool kFirst, typename A, typename B>
using conditional_t = typename conditional<kFirst, A, B>::type;

__device__ inline float sqrt(float x) { return ::sqrtf(x); }
__device__ inline double sqrt(double x) { return ::sqrt(x); }
__device__ inline float log(float x) { return ::logf(x); }
__device__ inline double log(double x) { return ::log(x); }
__device__ inline float pow(float x, float y) { return ::powf(x, y); }
__device__ inline double pow(double x, double y) { return ::pow(x, y); }
__device__ inline float trunc(float x) { return ::truncf(x); }
__device__ inline double trunc(double x) { return ::trunc(x); }
__device__ inline double exp(double x) { return ::exp(x); }
__device__ inline double tanh(double x) { return ::tanh(x); }

}  // namespace std
