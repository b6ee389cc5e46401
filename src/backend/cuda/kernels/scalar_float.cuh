// exp, tanh and GELU in float on the device, in place of ops/scalar_float.h.
#pragma once

#include "backend/cuda/kernels/std.cuh"

namespace tokamak::scalar {

/// 2^t as the hardware has it, relative error below 2e-7.
__device__ inline float power_of_two(float t) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
  return y;
}

/// e^x, relative error below 1e-6; 0 below -87.3, infinity above 88.7. 2^t with t = x log2(e), times what the rounding
/// of t left out: e^(x - t ln2), which is 1 + (x - t ln2) as the difference is small. Where t is infinite or huge that
/// factor is NaN or nonsense, and the maximum keeps it from spoiling 0 and infinity.
__device__ inline float exp(float x) {
  float t = x * 1.44269504f;
  float correction = 1.0f + fmaf(-t, 0.693147181f, x);
  return power_of_two(t) * fmaxf(fabsf(correction), 0.5f);
}

/// e^x in two instructions, relative error below 2e-7 + 6e-8 |x|: t is rounded and nothing makes up for it.
__device__ inline float coarse_exp(float x) { return power_of_two(x * 1.44269504f); }

/// 1 / x, relative error below 2e-7.
__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The logistic function of 2 u(x), u as in GELU's tanh form, in six instructions; the constants are those of
/// ops/scalar_math.h times -log2(e).
__device__ inline float gelu_logistic(float x) {
  return reciprocal(1.0f + power_of_two(x * fmaf(-0.102943240f, x * x, -2.30220820f)));
}

/// As ops/scalar_math.h, relative error below 1e-6 (1 + |u|). Matmuls apply it to what they store, where each
/// instruction counts.
__device__ inline float gelu(float x) { return x * gelu_logistic(x); }

/// dy (s + x s (1 - s) u'), s = gelu_logistic(x). Where s is near 1, what 1 - s lost is nothing beside s.
__device__ inline float gelu_grad(float x, float dy) {
  float s = gelu_logistic(x);
  return dy * fmaf(fmaf(-s, s, s), x * fmaf(0.214064449f, x * x, 1.59576912f), s);
}

/// tanh, error below 1e-6: an odd polynomial near 0, 1 - 2 / (e^2x + 1) elsewhere.
__device__ inline float tanh(float x) {
  float a = fabsf(x), z = x * x;
  float p = fmaf(-5.70498872745e-3f, z, 2.06390887954e-2f);
  p = fmaf(p, z, -5.37397155531e-2f);
  p = fmaf(p, z, 1.33314422036e-1f);
  p = fmaf(p, z, -3.33332819422e-1f);
  float small = fmaf(x * z, p, x);
  float large = copysignf(1.0f - __fdividef(2.0f, exp(a + a) + 1.0f), x);
  return a < 0.625f ? small : large;
}

}  // namespace tokamak::scalar
