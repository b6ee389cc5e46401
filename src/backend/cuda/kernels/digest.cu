// The digest of tensors' bits (backend/digest.h): blocks add what their pieces give, in any order, as the sum is one of
// integers.
#include "backend/cuda/kernels/storage.cuh"
#include "ops/element_digest.h"

using namespace tokamak;

constexpr int kThreads = 256;
constexpr int kAhead = 4;

/// As in backend/digest.h.
struct DigestPiece {
  const void* from;
  uint64_t salt;
  int64_t whole, stride;
  int32_t row, count, element_bytes, unused;
};

template <typename Bits>
__device__ inline uint64_t digest_of(const DigestPiece& piece) {
  const Bits* from = static_cast<const Bits*>(piece.from);
  bool is_one_row = piece.count <= piece.row;
  uint64_t sum = 0;
#pragma unroll kAhead
  for (int32_t i = int32_t(threadIdx.x); i < piece.count; i += kThreads) {
    int32_t row = is_one_row ? 0 : i / piece.row;
    int64_t index = piece.whole + row * piece.stride + (i - row * piece.row);
    sum += element_digest(piece.salt, uint64_t(index), uint32_t(from[i]));
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads) digest(const DigestPiece* pieces, uint64_t* sum) {
  tokamak::begin_kernel();
  __shared__ uint64_t shared[kThreads];
  DigestPiece piece = pieces[blockIdx.x];
  uint64_t own = 0;
  if (piece.element_bytes == 4) own = digest_of<uint32_t>(piece);
  if (piece.element_bytes == 2) own = digest_of<uint16_t>(piece);
  if (piece.element_bytes == 1) own = digest_of<uint8_t>(piece);
  shared[threadIdx.x] = own;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (int(threadIdx.x) < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(sum, shared[0]);
}
