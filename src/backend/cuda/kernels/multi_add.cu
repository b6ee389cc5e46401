// Sums of many tensors (ops/multi_add.cpp). The text before this says kTerms.
#include "backend/cuda/kernels/tensor_list.cuh"
#include "backend/cuda/kernels/vectors.cuh"

using namespace tokamak;

constexpr int kThreads = 256;
constexpr int kVector = 4;  // elements of a thread at a time: 16 bytes
constexpr int kAhead = 4;

/// Addresses of one sum; it may take the place of a term.
struct Tensor {
  const float* terms[kTerms];
  float* sum;
};

__device__ inline void add_piece(const Tensor& t, int64_t begin, int64_t count) {
  int64_t vectors = count / kVector;
  for (int64_t i0 = threadIdx.x; i0 < vectors; i0 += kThreads * kAhead) {
    float sums[kAhead][kVector];
#pragma unroll
    for (int term = 0; term < kTerms; ++term) {
      float x[kAhead][kVector];
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
        if (i0 + a * kThreads < vectors)
          load_floats<kVector>(t.terms[term] + begin + (i0 + a * kThreads) * kVector, x[a]);
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
#pragma unroll
        for (int k = 0; k < kVector; ++k) sums[a][k] = term == 0 ? x[a][k] : sums[a][k] + x[a][k];
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a)
      if (i0 + a * kThreads < vectors) store_floats<kVector>(t.sum + begin + (i0 + a * kThreads) * kVector, sums[a]);
  }
  int64_t rest = begin + vectors * kVector + threadIdx.x;
  if (rest >= begin + count) return;
  float sum = t.terms[0][rest];
#pragma unroll
  for (int term = 1; term < kTerms; ++term) sum += t.terms[term][rest];
  t.sum[rest] = sum;
}

extern "C" __global__ void __launch_bounds__(kThreads) multi_add(const Piece* pieces, const Tensor* tensors) {
  tokamak::begin_kernel();
  Piece piece = pieces[blockIdx.x];
  add_piece(tensors[piece.tensor], piece.begin, piece.count);
}
