// What the warps of kernels/attention_grad_hopper.cu have summed, over samples and warps, in order.
#include "backend/cuda/kernels/std.cuh"

constexpr int kHeadDim = 64, kParts = 16;  // parts of the terms, summed side by side

// from: (B, H, warps, 3, D), to: (3, H, D). Grid: (H, 3) blocks.
extern "C" __global__ void __launch_bounds__(kParts* kHeadDim)
    attention_column_sums(const float* __restrict__ from, float* __restrict__ to, int32_t batch, int32_t heads,
                          int32_t warps) {
  __shared__ float sums[kParts][kHeadDim];
  int column = int(threadIdx.x) % kHeadDim, part = int(threadIdx.x) / kHeadDim;
  int h = int(blockIdx.x), which = int(blockIdx.y);
  float sum = 0;
#pragma unroll 8
  for (int term = part; term < batch * warps; term += kParts) {
    int64_t row = (int64_t(term / warps) * heads + h) * warps + term % warps;
    sum += from[(row * 3 + which) * kHeadDim + column];
  }
  sums[part][column] = sum;
  __syncthreads();
  if (part != 0) return;
  for (int other = 1; other < kParts; ++other) sum += sums[other][column];
  to[(which * heads + h) * kHeadDim + column] = sum;
}
