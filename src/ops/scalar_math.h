// The pointwise maths, written once as scalar functions of a template type: double for the reference interpreter, float
// for the CPU tile kernels (branch-free, so that loops over them vectorise) and in generated device code. Nothing but
// <cmath> and <bit> is used.
#pragma once

#include "ops/scalar_float.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace tokamak::scalar {

/// Rounds to the nearest bf16, ties to even; infinities and NaN stay.
inline float round_bf16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u;
  return x == x ? std::bit_cast<float>(rounded) : x;
}

/// One of the two bf16 between which x lies, the nearer the likelier: the mean of many roundings is x. The chance comes
/// from the bits of x and of `salt` alone, by MurmurHash3's last steps (Appleby, 2011), so that the rounding of an
/// element is the same wherever it lies. What is a bf16, infinities and NaN stay.
inline float stochastic_bf16(float x, float salt) {
  uint32_t bits = std::bit_cast<uint32_t>(x), h = bits ^ std::bit_cast<uint32_t>(salt) * 0x9E3779B1u;
  h = (h ^ h >> 16) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  uint32_t rounded = (bits + ((h ^ h >> 16) & 0xFFFFu)) & 0xFFFF0000u;
  return x == x ? std::bit_cast<float>(rounded) : x;
}
inline double stochastic_bf16(double x, double salt) { return double(stochastic_bf16(float(x), float(salt))); }

inline double exp(double x) { return std::exp(x); }
inline double tanh(double x) { return std::tanh(x); }

inline float cast_bf16(float x) { return round_bf16(x); }
inline double cast_bf16(double x) { return double(round_bf16(float(x))); }

template <typename T>
T cast_i32(T x) {
  return std::trunc(x);
}

template <typename T>
T add(T a, T b) {
  return a + b;
}
template <typename T>
T sub(T a, T b) {
  return a - b;
}
template <typename T>
T mul(T a, T b) {
  return a * b;
}
template <typename T>
T div(T a, T b) {
  return a / b;
}
template <typename T>
T maximum(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
T minimum(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
T pow(T a, T b) {
  return std::pow(a, b);
}
template <typename T>
T less(T a, T b) {
  return a < b ? T(1) : T(0);
}
template <typename T>
T equal(T a, T b) {
  return a == b ? T(1) : T(0);
}
template <typename T>
T select(T c, T a, T b) {
  return c != T(0) ? a : b;
}

template <typename T>
T neg(T a) {
  return -a;
}
template <typename T>
T exponential(T a) {
  return exp(a);
}
template <typename T>
T logarithm(T a) {
  return std::log(a);
}
template <typename T>
T hyperbolic_tangent(T a) {
  return tanh(a);
}
template <typename T>
T square_root(T a) {
  return std::sqrt(a);
}
template <typename T>
T reciprocal_root(T a) {
  return T(1) / std::sqrt(a);
}

/// GELU, tanh form: Hendrycks & Gimpel, "Gaussian error linear units" (2016). (1 + tanh(u)) / 2 is the logistic
/// function of 2u, which needs one exponential and keeps its relative precision for large negative x.
template <typename T>
T gelu_logistic(T x) {
  T u2 = T(1.5957691216057308) * (x + T(0.044715) * x * x * x);
  return T(1) / (T(1) + exp(-u2));
}
template <typename T>
T gelu(T x) {
  return x * gelu_logistic(x);
}
template <typename T>
T gelu_grad(T x, T dy) {
  T u2 = T(1.5957691216057308) * (x + T(0.044715) * x * x * x);
  T du2 = T(1.5957691216057308) * (T(1) + T(0.134145) * x * x);
  T e = exp(u2 < T(0) ? u2 : -u2), r = T(1) / (T(1) + e);  // e <= 1, so 1 - s = e r without cancellation
  T s = u2 < T(0) ? e * r : r;
  return dy * (s + x * (e * r * r) * du2);
}

// x times the logistic function. e = exp(-|x|) <= 1, so that neither overflows, and 1 - s = e r without cancellation.
template <typename T>
T silu(T x) {
  T e = exp(x < T(0) ? x : -x), r = T(1) / (T(1) + e);
  return x * (x < T(0) ? e * r : r);
}
template <typename T>
T silu_grad(T x, T dy) {
  T e = exp(x < T(0) ? x : -x), r = T(1) / (T(1) + e);
  T s = x < T(0) ? e * r : r;
  return dy * (s + x * (e * r * r));
}

/// The square of max(x, 0): So et al., "Primer: Searching for efficient transformers" (2021). NaN stays.
template <typename T>
T relu2(T x) {
  T r = x < T(0) ? T(0) : x;
  return r * r;
}
template <typename T>
T relu2_grad(T x, T dy) {
  return T(2) * (x < T(0) ? T(0) : x) * dy;
}

}  // namespace tokamak::scalar
