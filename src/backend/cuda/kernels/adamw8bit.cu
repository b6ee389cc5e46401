// AdamW with moments of 8 bits (ops/adamw8bit.cpp), a warp for each block of a row. The text before this says Grad,
// kLength, kEps, kDecay, for both betas kBeta, kNew (1 - beta) and kLogBeta (its logarithm), and the tables of
// ops/dynamic_map.h: kValues and kMidpoints, each of m and then of v.
#include "backend/cuda/kernels/storage.cuh"

using namespace tokamak;

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr int kOfLane = (kLength + kLanes - 1) / kLanes;  // elements of a block

struct Tables {
  float values[256], midpoints[256];
};

/// What a lane has of a block's moment.
struct Moment {
  float x[kOfLane];
};

__device__ inline float largest_of_warp(float x) {
  for (int offset = kLanes / 2; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}

// How many midpoints are below x.
__device__ inline uint8_t nearest(const Tables& t, float x) {
  int code = 0;
  for (int half = 128; half > 0; half /= 2)
    if (x > t.midpoints[code + half - 1]) code += half;
  return uint8_t(code);
}

__device__ inline void widen(const Tables& t, const uint8_t* codes, float scale, Moment& moment) {
  int lane = threadIdx.x % kLanes;
#pragma unroll
  for (int k = 0; k < kOfLane; ++k)
    if (int i = lane + k * kLanes; i < kLength) moment.x[k] = t.values[codes[i]] * scale;
}

__device__ inline void narrow(const Tables& t, const Moment& moment, uint8_t* codes, float* scale) {
  int lane = threadIdx.x % kLanes;
  float largest = 0;
#pragma unroll
  for (int k = 0; k < kOfLane; ++k)
    if (lane + k * kLanes < kLength) largest = fmaxf(largest, fabsf(moment.x[k]));
  largest = largest_of_warp(largest);
#pragma unroll
  for (int k = 0; k < kOfLane; ++k)
    if (int i = lane + k * kLanes; i < kLength) codes[i] = nearest(t, largest > 0 ? moment.x[k] / largest : 0);
  if (lane == 0) *scale = largest;
}

struct Scalars {
  float scale, kept, rate, root;  // param * kept - rate * m / (sqrt(v) * root + eps)
};

__device__ inline void update(const Scalars& s, const float* param, const Grad* grad, Moment& m, Moment& v, float* to) {
  int lane = threadIdx.x % kLanes;
#pragma unroll
  for (int k = 0; k < kOfLane; ++k) {
    int i = lane + k * kLanes;
    if (i >= kLength) break;
    float g = to_float(grad[i]) * s.scale;
    m.x[k] = fmaf(kBeta1, m.x[k], kNew1 * g);
    v.x[k] = fmaf(kBeta2, v.x[k], kNew2 * g * g);
    float change = __fdividef(s.rate * m.x[k], fmaf(sqrtf(v.x[k]), s.root, kEps));
    to[i] = fmaf(param[i], s.kept, -change);
  }
}

template <typename T>
__device__ inline void keep(const T* from, T* to, int64_t count) {
  if (from == to) return;
  for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < count; i += int64_t(gridDim.x) * kThreads)
    to[i] = from[i];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    adamw8bit(const float* param, const Grad* grad, const uint8_t* m, const float* m_scale, const uint8_t* v,
              const float* v_scale, const float* lr, const float* scale, const float* step, float* param_out,
              uint8_t* m_out, float* m_scale_out, uint8_t* v_out, float* v_scale_out, int64_t blocks) {
  tokamak::begin_kernel();
  if (*scale == 0) {  // the update is left out, whatever the gradient is
    keep(param, param_out, blocks * kLength);
    keep(m, m_out, blocks * kLength);
    keep(v, v_out, blocks * kLength);
    keep(m_scale, m_scale_out, blocks);
    keep(v_scale, v_scale_out, blocks);
    return;
  }
  __shared__ Tables tables[2];
  for (int t = 0; t < 2; ++t) {
    tables[t].values[threadIdx.x] = kValues[t][threadIdx.x];
    if (threadIdx.x < 255) tables[t].midpoints[threadIdx.x] = kMidpoints[t][threadIdx.x];
  }
  __syncthreads();
  // 1 - beta^step without the cancellation of 1 - powf(beta, step).
  float c1 = -expm1f(*step * kLogBeta1), c2 = -expm1f(*step * kLogBeta2);
  Scalars scalars{*scale, 1 - *lr * kDecay, *lr / c1, 1 / sqrtf(c2)};
  constexpr int kWarps = kThreads / kLanes;
  for (int64_t b = blockIdx.x * int64_t(kWarps) + threadIdx.x / kLanes; b < blocks; b += int64_t(gridDim.x) * kWarps) {
    int64_t first = b * kLength;
    Moment of_m, of_v;
    widen(tables[0], m + first, m_scale[b], of_m);
    widen(tables[1], v + first, v_scale[b], of_v);
    __syncwarp();  // all lanes have read the scales that lane 0 writes
    update(scalars, param + first, grad + first, of_m, of_v, param_out + first);
    narrow(tables[0], of_m, m_out + first, m_scale_out + b);
    narrow(tables[1], of_v, v_out + first, v_scale_out + b);
  }
}
