// What the generated function tree_sum (nccl.h) is written with. The text before this says T, the type of elements, and
// kPieces.
#pragma once

#include "backend/cuda/kernels/storage.cuh"

using namespace tokamak;

struct Pieces {
  const T* at[kPieces];
};

__device__ inline int64_t first_element() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t elements_apart() { return int64_t(gridDim.x) * blockDim.x; }

/// What elements are added as: i32 as unsigned, whose sums wrap around, all else as floats.
template <typename Element>
struct Numbers {
  using Type = float;
  __device__ static float load(Element x) { return to_float(x); }
  __device__ static void store(float x, Element& y) { from_float(x, y); }
  __device__ static float stored(float x) { return rounded<Element>(x); }
};
template <>
struct Numbers<int32_t> {
  using Type = uint32_t;
  __device__ static uint32_t load(int32_t x) { return uint32_t(x); }
  __device__ static void store(uint32_t x, int32_t& y) { y = int32_t(x); }
  __device__ static uint32_t stored(uint32_t x) { return x; }
};

using Number = Numbers<T>::Type;
__device__ inline Number load(T x) { return Numbers<T>::load(x); }
__device__ inline void store(Number x, T& y) { Numbers<T>::store(x, y); }
__device__ inline Number stored(Number x) { return Numbers<T>::stored(x); }
