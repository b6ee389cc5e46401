// AdamW (ops/adamw.cpp) for many tensors. The text before this says kEps, kDecay, and for both betas kBeta,
// kNew (1 - beta) and kLogBeta (its logarithm), and kLowState: m and v are bf16.
#include "backend/cuda/kernels/tensor_list.cuh"
#include "backend/cuda/kernels/vectors.cuh"
#include "ops/scalar_math.h"

using namespace tokamak;

constexpr int kThreads = 256;
constexpr int kVector = 4;  // elements of a thread at a time: 16 bytes of the parameters and moments
constexpr int kAhead = 2;

using State = std::conditional_t<kLowState, bf16, float>;

/// Addresses of one tensor; an output may be the input of the same name.
struct Tensor {
  const float* param;
  const void* grad;
  const State* m;
  const State* v;
  float* param_out;
  State* m_out;
  State* v_out;
};

struct Scalars {
  float step, scale, kept, rate, root;  // param * kept - rate * m / (sqrt(v) * root + eps)
};

// As it is stored.
__device__ inline float as_kept(const Scalars& s, float x) { return kLowState ? scalar::stochastic_bf16(x, s.step) : x; }

struct Element {
  float param, m, v;
};

__device__ inline Element update(const Scalars& s, Element x, float grad) {
  float g = grad * s.scale;
  x.m = fmaf(kBeta1, x.m, kNew1 * g);
  x.v = fmaf(kBeta2, x.v, kNew2 * g * g);
  float change = __fdividef(s.rate * x.m, fmaf(sqrtf(x.v), s.root, kEps));
  x.param = fmaf(x.param, s.kept, -change);
  x.m = as_kept(s, x.m), x.v = as_kept(s, x.v);
  return x;
}

struct Block {
  float param[kVector], m[kVector], v[kVector], grad[kVector];
};

template <typename Grad>
__device__ inline void load(const Tensor& t, int64_t at, Block& b) {
  load_floats<kVector>(t.param + at, b.param);
  load_floats<kVector>(t.m + at, b.m);
  load_floats<kVector>(t.v + at, b.v);
  load_floats<kVector>(static_cast<const Grad*>(t.grad) + at, b.grad);
}

__device__ inline void update_and_store(const Tensor& t, const Scalars& s, int64_t at, Block& b) {
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    Element x = update(s, {b.param[k], b.m[k], b.v[k]}, b.grad[k]);
    b.param[k] = x.param, b.m[k] = x.m, b.v[k] = x.v;
  }
  store_floats<kVector>(t.param_out + at, b.param);
  store_floats<kVector>(t.m_out + at, b.m);
  store_floats<kVector>(t.v_out + at, b.v);
}

template <typename Grad>
__device__ inline void update_piece(const Tensor& t, const Scalars& s, int64_t begin, int64_t count) {
  int64_t vectors = count / kVector;
  for (int64_t i0 = threadIdx.x; i0 < vectors; i0 += kThreads * kAhead) {
    Block blocks[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (i0 + k * kThreads < vectors) load<Grad>(t, begin + (i0 + k * kThreads) * kVector, blocks[k]);
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (i0 + k * kThreads < vectors) update_and_store(t, s, begin + (i0 + k * kThreads) * kVector, blocks[k]);
  }
  if (int64_t rest = vectors * kVector + threadIdx.x; rest < count) {
    int64_t at = begin + rest;
    Element x = update(s, {t.param[at], to_float(t.m[at]), to_float(t.v[at])}, to_float(static_cast<const Grad*>(t.grad)[at]));
    t.param_out[at] = x.param;
    from_float(x.m, t.m_out[at]), from_float(x.v, t.v_out[at]);
  }
}

// A scale of 0 says that the update is left out: the outputs are the inputs, whatever the gradient is.
template <typename T>
__device__ inline void keep(const T* from, T* to, int64_t begin, int64_t count) {
  if (from == to) return;
  for (int64_t i = begin + threadIdx.x; i < begin + count; i += kThreads) to[i] = from[i];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    multi_adamw(const Piece* pieces, const Tensor* tensors, const int32_t* decayed, const float* lr, const float* scale,
                const float* step) {
  tokamak::begin_kernel();
  Piece piece = pieces[blockIdx.x];
  Tensor tensor = tensors[piece.tensor];
  if (*scale == 0) {
    keep(tensor.param, tensor.param_out, piece.begin, piece.count);
    keep(tensor.m, tensor.m_out, piece.begin, piece.count);
    keep(tensor.v, tensor.v_out, piece.begin, piece.count);
    return;
  }
  // 1 - beta^step without the cancellation of 1 - powf(beta, step).
  float c1 = -expm1f(*step * kLogBeta1), c2 = -expm1f(*step * kLogBeta2);
  float kept = decayed[piece.tensor] ? 1 - *lr * kDecay : 1.0f;
  Scalars scalars{*step, *scale, kept, *lr / c1, 1 / sqrtf(c2)};
  with_type(piece.dtype, [&](auto zero) { update_piece<decltype(zero)>(tensor, scalars, piece.begin, piece.count); });
}
