// A product of a warp by the tensor cores: compute capability 8.0 and above. PTX ISA, "mma.m16n8k16" with elements of
// 16 bits, where a thread is (g, t) = (lane / 4, lane % 4) and k goes in pairs, two to a word.
#pragma once

#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

/// sum (16, 8) += x (16, 16) y (16, 8). A thread's words of x: rows g and g + 8 of pair t, then both of pair t + 4; of
/// y: column g of pairs t and t + 4; its sums: row g of columns 2t and 2t + 1, then row g + 8. Which k a pair stands
/// for is the caller's to choose, the same for x and y.
template <typename Element>
__device__ inline void multiply_16x8x16(float (&sum)[4], const uint32_t (&x)[4], uint2 y);

template <>
__device__ inline void multiply_16x8x16<bf16>(float (&sum)[4], const uint32_t (&x)[4], uint2 y) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y.x), "r"(y.y));
}

template <>
__device__ inline void multiply_16x8x16<f16>(float (&sum)[4], const uint32_t (&x)[4], uint2 y) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y.x), "r"(y.y));
}

/// The pairs along k of two columns, x.x the lower one's and x.y the upper one's, when each word has both columns of a
/// row.
__device__ inline uint2 pair_rows(uint32_t row, uint32_t next) {
  return {__byte_perm(row, next, 0x5410), __byte_perm(row, next, 0x7632)};
}

}  // namespace tokamak
