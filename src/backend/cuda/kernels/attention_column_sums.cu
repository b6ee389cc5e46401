// The sums of dqkv over B and T, the gradient of a bias on qkv, from what kernels/attention_grad_hopper.cu has summed,
// in order. Of dQ these are sums of what it stores. Of dV they are those of dout, as the probabilities of a query,
// which sees one key at least, sum to 1; with dropout they are sums of what it stores. Of dK they are zero: a bias on k
// adds the same to all scores of a query, which softmax does not see, and what rounding would leave here is noise. The
// text before this says kHeadDim.
#include "backend/cuda/kernels/std.cuh"

constexpr int kVector = 4, kLanes = kHeadDim / kVector;
constexpr int kParts = 1024 / kLanes;  // of the terms, summed side by side

// dq: (dq_terms, H, D), dv: (dv_terms, H, D), to: (3, H, D). Grid: (H, 3) blocks.
extern "C" __global__ void __launch_bounds__(kParts* kLanes)
    attention_column_sums(const float* __restrict__ dq, const float* __restrict__ dv, float* __restrict__ to,
                          int32_t dq_terms, int32_t dv_terms) {
  tokamak::begin_kernel();
  __shared__ float sums[kParts][kHeadDim];
  int part = int(threadIdx.x) / kLanes, lane = int(threadIdx.x) % kLanes, which = int(blockIdx.y);
  int64_t width = int64_t(gridDim.x) * kHeadDim;
  int first = int(blockIdx.x) * kHeadDim;
  const float* from = (which == 0 ? dq : dv) + first + lane * kVector;
  int terms = which == 0 ? dq_terms : which == 1 ? 0 : dv_terms;
  float4 sum = {0, 0, 0, 0};
#pragma unroll 8
  for (int term = part; term < terms; term += kParts) {
    float4 x = *reinterpret_cast<const float4*>(from + term * width);
    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
  }
  *reinterpret_cast<float4*>(&sums[part][lane * kVector]) = sum;
  __syncthreads();
  if (threadIdx.x >= kHeadDim) return;
  float all = 0;
  for (int other = 0; other < kParts; ++other) all += sums[other][threadIdx.x];
  to[which * width + first + threadIdx.x] = all;
}
