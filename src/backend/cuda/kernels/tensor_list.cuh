// Many tensors in one launch: a list of blocks, each a piece of one tensor, and a list of the tensors' addresses.
#pragma once

#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

/// What one block works on; `dtype` is the number of the type in graph/type.h, of the tensor's operand that may have
/// several.
struct Piece {
  int32_t tensor;
  int32_t dtype;
  int64_t begin;  // a multiple of 16 elements, if not of a sum of several
  int64_t count;
};

constexpr int kF32 = 0, kBF16 = 1, kF16 = 2;

/// Calls work(T()) with T the type of that number.
template <typename Work>
__device__ inline void with_type(int32_t dtype, const Work& work) {
  if (dtype == kF32) work(float());
  if (dtype == kBF16) work(bf16());
  if (dtype == kF16) work(f16());
}

}  // namespace tokamak
