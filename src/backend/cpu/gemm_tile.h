// The micro-kernel of attention: small matrix products out of the L1/L2 cache, sums kept in registers.
// Tests: tests/backend/cpu/gemm_tile_test.cpp.
#pragma once

#include <cstdint>

namespace tokamak::cpu {

/// One operand of a product as it lies: element (row, col) is data[row * row_stride + col * col_stride].
struct Strided {
  const float* data;
  int64_t row_stride, col_stride;
};

/// C (m, n) = A (m, k) B (k, n), or C += with accumulate. n must be a multiple of kLanes; rows of B and C lie dense in
/// themselves, ldb and ldc floats apart. Each element's sum runs over k in order, whatever m and n are.
void gemm_tile(int64_t m, int64_t n, int64_t k, Strided a, const float* b, int64_t ldb, float* c, int64_t ldc,
               bool accumulate);

}  // namespace tokamak::cpu
