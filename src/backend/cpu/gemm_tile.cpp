#include "backend/cpu/gemm_tile.h"

#include "backend/cpu/simd.h"
#include "base/divide.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tokamak::cpu {
namespace {

// 6 x 4 vectors of sums + 4 of B + 1 of A fit 32 registers, 6 x 2 + 2 + 1 fit 16; both load less than they multiply.
constexpr int kRows = 6;

using Kernel = void (*)(int64_t k, Strided a, const float* b, int64_t ldb, float* c, int64_t ldc, bool accumulate);

template <int M, int N>
void kernel(int64_t k, Strided a, const float* b, int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  Vec sums[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sums[i][j] = accumulate ? load(c + i * ldc + j * kLanes) : Vec{};
  const float* pa = a.data;
  for (int64_t p = 0; p < k; ++p, pa += a.col_stride, b += ldb) {
    Vec row[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) row[j] = load(b + j * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      Vec x = broadcast(pa[i * a.row_stride]);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sums[i][j] += x * row[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) store(c + i * ldc + j * kLanes, sums[i][j]);
}

// kernels[(rows - 1) * kTileVectors + vectors - 1]
template <size_t... I>
constexpr std::array<Kernel, sizeof...(I)> make_kernels(std::index_sequence<I...>) {
  return {kernel<int(I) / kTileVectors + 1, int(I) % kTileVectors + 1>...};
}
constexpr auto kKernels = make_kernels(std::make_index_sequence<kRows * kTileVectors>());

}  // namespace

void gemm_tile(int64_t m, int64_t n, int64_t k, Strided a, const float* b, int64_t ldb, float* c, int64_t ldc,
               bool accumulate) {
  // Columns in even pieces: 5 vectors go as 3 + 2, because one vector alone leaves the multipliers waiting.
  int64_t vectors = n / kLanes, pieces = ceil_div(vectors, kTileVectors);
  for (int64_t piece = 0; piece < pieces; ++piece) {
    int64_t begin = vectors * piece / pieces, width = vectors * (piece + 1) / pieces - begin;
    for (int64_t i = 0; i < m; i += kRows) {
      int64_t rows = std::min<int64_t>(kRows, m - i);
      Strided from{a.data + i * a.row_stride, a.row_stride, a.col_stride};
      kKernels[size_t((rows - 1) * kTileVectors + width - 1)](k, from, b + begin * kLanes, ldb,
                                                              c + i * ldc + begin * kLanes, ldc, accumulate);
    }
  }
}

}  // namespace tokamak::cpu
