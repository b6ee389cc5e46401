// Vectors of floats in GCC's and Clang's vector extension: as wide as the CPU that the build is for, so the same loops
// become AVX-512, AVX2 or SSE. Also bf16 as a storage type. Tests: tests/backend/cpu/simd_test.cpp.
#pragma once

#include "graph/type.h"

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tokamak::cpu {

// Registers decide the shape of the micro-kernel: 32 of them with AVX-512, 16 elsewhere.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64, kTileVectors = 4;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32, kTileVectors = 2;
#else
inline constexpr int kVectorBytes = 16, kTileVectors = 2;
#endif

inline constexpr int kLanes = kVectorBytes / 4;  // floats in a vector
typedef float Vec __attribute__((vector_size(kVectorBytes)));
typedef int32_t IntVec __attribute__((vector_size(kVectorBytes)));

/// A bf16 number as it lies in memory: the upper half of a float.
enum class Bf16 : uint16_t {};

template <typename T>
inline constexpr DType kDTypeOf = DType::kF32;
template <>
inline constexpr DType kDTypeOf<Bf16> = DType::kBF16;

inline float to_float(float x) { return x; }
inline float to_float(Bf16 x) { return std::bit_cast<float>(uint32_t(x) << 16); }

/// Rounds to nearest, ties to even; infinities and NaN stay what they are.
template <typename T>
inline T from_float(float x);
template <>
inline float from_float<float>(float x) {
  return x;
}
template <>
inline Bf16 from_float<Bf16>(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return Bf16(x == x ? rounded : bits >> 16 | 0x40u);
}

inline Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// kLanes numbers, widened. By hand, as GCC 12 takes ten instructions for what is two.
#if defined(__AVX512F__)
inline Vec load_bf16(const Bf16* p) {
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return std::bit_cast<Vec>(_mm512_slli_epi32(wide, 16));
}
#elif defined(__AVX2__)
inline Vec load_bf16(const Bf16* p) {
  __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return std::bit_cast<Vec>(_mm256_slli_epi32(wide, 16));
}
#else
inline Vec load_bf16(const Bf16* p) {
  Vec v;
  for (int i = 0; i < kLanes; ++i) v[i] = to_float(p[i]);
  return v;
}
#endif

inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
inline Vec broadcast(float x) { return x - Vec{}; }  // not x + 0, which would turn -0 into 0
inline Vec max(Vec a, Vec b) { return a > b ? a : b; }

/// The greatest lane, and the sum of all lanes (pairwise, always in the same order).
inline float reduce_max(Vec v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
  return lanes[0];
}
inline float reduce_sum(Vec v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

/// e^x for x <= 88, relative error below 2e-7, 0 below -87.3: 2^n P(r) with |r| <= ln2 / 2, as ops/scalar_math.h.
inline Vec exp(Vec x) {
  const Vec lowest = broadcast(-87.3f), magic = broadcast(12582912.0f);  // adding 1.5 * 2^23 rounds to an integer
  Vec clamped = max(x, lowest);
  Vec n = (clamped * 1.44269504f + magic) - magic;
  Vec r = clamped - n * 0.693145752f;
  r = r - n * 1.42860677e-6f;
  Vec p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  IntVec power = (__builtin_convertvector(n, IntVec) + 127) << 23;
  Vec scale;
  std::memcpy(&scale, &power, sizeof scale);
  return x < lowest ? Vec{} : p * scale;
}

}  // namespace tokamak::cpu
