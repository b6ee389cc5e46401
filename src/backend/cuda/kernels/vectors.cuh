// Runs of N elements of any type as floats, loaded and stored in pieces of up to 16 bytes. The address must be a
// multiple of a piece's size.
#pragma once

#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

/// Elements of one piece.
template <typename T, int N>
constexpr int kPiece = N* int(sizeof(T)) <= 16 ? N : 16 / int(sizeof(T));

template <int N, typename T>
__device__ inline void load_floats(const T* from, float* to) {
  constexpr int kLength = kPiece<T, N>;
  static_assert(N % kLength == 0);
#pragma unroll
  for (int p = 0; p < N / kLength; ++p) {
    Vector<T, kLength> piece = reinterpret_cast<const Vector<T, kLength>*>(from)[p];
#pragma unroll
    for (int i = 0; i < kLength; ++i) to[p * kLength + i] = to_float(piece[i]);
  }
}

template <int N, typename T>
__device__ inline void store_floats(T* to, const float* from) {
  constexpr int kLength = kPiece<T, N>;
  static_assert(N % kLength == 0);
#pragma unroll
  for (int p = 0; p < N / kLength; ++p) {
    Vector<T, kLength> piece;
#pragma unroll
    for (int i = 0; i < kLength; ++i) from_float(from[p * kLength + i], piece[i]);
    reinterpret_cast<Vector<T, kLength>*>(to)[p] = piece;
  }
}

}  // namespace tokamak
