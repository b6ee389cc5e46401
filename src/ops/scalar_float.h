// exp and tanh in float, of scalar_math.h: polynomials without branches, for loops that vectorise. Device code gets
// others under this file's name, which use the hardware's exponential (backend/cuda/kernels/scalar_float.cuh).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tokamak::scalar {

/// e^x, relative error below 2e-7: 2^n * P(r) with |r| <= ln2 / 2; 0 below -87.3, infinity above 88.7.
inline float exp(float x) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to the nearest integer
  float clamped = x < -87.3f ? -87.3f : x;
  clamped = clamped > 88.7f ? 88.7f : clamped;
  float n = (clamped * 1.44269504f + kMagic) - kMagic;
  float r = clamped - n * 0.693145752f;
  r = r - n * 1.42860677e-6f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // Two steps, because 2^128 is not a float.
  int half = int(n) >> 1;
  float s1 = std::bit_cast<float>((half + 127) << 23), s2 = std::bit_cast<float>((int(n) - half + 127) << 23);
  float y = p * s1 * s2;
  y = x < -87.3f ? 0.0f : y;
  return x > 88.7f ? HUGE_VALF : y;
}

/// tanh, error below 3e-7: an odd polynomial near 0, 1 - 2 / (e^2x + 1) elsewhere.
inline float tanh(float x) {
  float a = x < 0 ? -x : x, z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float small = x + x * z * p;
  float large = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  large = x < 0 ? -large : large;
  return a < 0.625f ? small : large;
}

}  // namespace tokamak::scalar
