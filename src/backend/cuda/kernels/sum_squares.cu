// Sums of squares of many tensors: one partial sum for each piece, then one block for each sum adds those that are its
// own. Everything in a fixed order.
#include "backend/cuda/kernels/tensor_list.cuh"
#include "backend/cuda/kernels/vectors.cuh"

using namespace tokamak;

constexpr int kThreads = 256;
constexpr int kAhead = 4;

// The sum over the block's threads: halves in turn.
template <typename T>
__device__ inline T sum_of_block(T own, T* shared) {
  shared[threadIdx.x] = own;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (int(threadIdx.x) < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

// The order of the sum is the same wherever the piece begins.
template <bool kAligned, typename T>
__device__ inline float sum_of_piece(const T* x, int64_t count) {
  constexpr int kVector = 16 / int(sizeof(T));
  float sums[kVector] = {};
  int64_t vectors = count / kVector;
#pragma unroll kAhead
  for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
    float v[kVector];
    if constexpr (kAligned) {
      load_floats<kVector>(x + i * kVector, v);
    } else {
#pragma unroll
      for (int k = 0; k < kVector; ++k) v[k] = to_float(x[i * kVector + k]);
    }
#pragma unroll
    for (int k = 0; k < kVector; ++k) sums[k] = fmaf(v[k], v[k], sums[k]);
  }
  int64_t rest = vectors * kVector + threadIdx.x;
  if (rest < count) sums[0] = fmaf(to_float(x[rest]), to_float(x[rest]), sums[0]);
#pragma unroll
  for (int half = kVector / 2; half > 0; half /= 2)
#pragma unroll
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sum_pieces(const Piece* pieces, const void* const* tensors, float* partial) {
  tokamak::begin_kernel();
  __shared__ float shared[kThreads];
  Piece piece = pieces[blockIdx.x];
  float sum = 0;
  with_type(piece.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = static_cast<const T*>(tensors[piece.tensor]) + piece.begin;
    bool aligned = reinterpret_cast<uint64_t>(x) % 16 == 0;
    sum = aligned ? sum_of_piece<true>(x, piece.count) : sum_of_piece<false>(x, piece.count);
  });
  sum = sum_of_block(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(kThreads) sum_partials(const float* partial, int32_t count, float* out) {
  tokamak::begin_kernel();
  __shared__ double shared[kThreads];
  double sum = 0;
  for (int i = int(threadIdx.x); i < count; i += kThreads) sum += double(partial[int64_t(blockIdx.x) * count + i]);
  sum = sum_of_block(sum, shared);
  if (threadIdx.x == 0) out[blockIdx.x] = float(sum);
}
