// Scales of activations in eight bits from the bounds that parameters give (ops/float8_scales.cpp): a block for each.
#include "backend/cuda/kernels/tensor_list.cuh"

using namespace tokamak;

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kOperands = 4;  // gain, bias, column, the product's bias
constexpr float kLeast = 1e-30f, kLargest = 448.0f;

/// Addresses of what one activation has, and of its scales; null: it has no such operand.
struct Activation {
  const void* operands[kOperands];
  float *scale, *inverse;
};

struct Bound {
  float length, rounding;  // of a norm's row; how much the product's bias grows
  int32_t dtypes[kOperands], counts[kOperands];
};

__device__ inline float largest_of_thread(const void* x, int32_t dtype, int32_t count) {
  float largest = 0;
  if (!x) return largest;
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
#pragma unroll 8
    for (int i = int(threadIdx.x); i < count; i += kThreads)
      largest = fmaxf(largest, fabsf(to_float(static_cast<const T*>(x)[i])));
  });
  return largest;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    float8_scales(const Bound* bounds, const Activation* activations) {
  tokamak::begin_kernel();
  __shared__ float of_warps[kOperands][kWarps];
  Bound bound = bounds[blockIdx.x];
  Activation activation = activations[blockIdx.x];
#pragma unroll
  for (int o = 0; o < kOperands; ++o) {
    float own = largest_of_thread(activation.operands[o], bound.dtypes[o], bound.counts[o]);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) own = fmaxf(own, __shfl_xor_sync(~0u, own, lanes));
    if (threadIdx.x % 32 == 0) of_warps[o][threadIdx.x / 32] = own;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  float largest[kOperands] = {};
#pragma unroll
  for (int o = 0; o < kOperands; ++o)
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest[o] = fmaxf(largest[o], of_warps[o][w]);
  bool is_product = activation.operands[2];
  float most = activation.operands[0] ? bound.length * largest[0] : bound.length;
  if (activation.operands[1]) most += is_product ? bound.length * largest[1] : largest[1];
  if (is_product) most *= largest[2];
  if (activation.operands[3]) most += largest[3] * bound.rounding;
  most = fmaxf(most, kLeast);
  *activation.scale = __fdiv_rn(most, kLargest);
  *activation.inverse = __fdiv_rn(kLargest, most);
}
