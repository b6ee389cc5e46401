#include "backend/cpu/gemm_tile.h"

#include "backend/cpu/simd.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokamak::cpu {
namespace {

TEST(GemmTile, AgreesForAnyRowsAndWidths) {
  for (int64_t m : {1, 4, 6, 7, 23})
    for (int64_t vectors = 1; vectors <= 9; ++vectors)
      for (bool accumulate : {false, true})
        for (bool transposed : {false, true}) {
          int64_t n = vectors * kLanes, k = 5, ldb = n + 3, ldc = n + 5;
          std::vector<float> a(size_t(m * k)), b(size_t(k * ldb)), c(size_t(m * ldc), 2.0f);
          for (size_t i = 0; i < a.size(); ++i) a[i] = float(i % 7) - 3;
          for (size_t i = 0; i < b.size(); ++i) b[i] = float(i % 11) - 5;
          Strided from = transposed ? Strided{a.data(), 1, m} : Strided{a.data(), k, 1};
          gemm_tile(m, n, k, from, b.data(), ldb, c.data(), ldc, accumulate);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < ldc; ++j) {
              float sum = accumulate ? 2 : 0;
              for (int64_t p = 0; p < k; ++p)
                sum += a[size_t(i * from.row_stride + p * from.col_stride)] * b[size_t(p * ldb + std::min(j, n - 1))];
              ASSERT_EQ(c[size_t(i * ldc + j)], j < n ? sum : 2.0f) << m << " " << n << " at " << i << "," << j;
            }
        }
}

}  // namespace
}  // namespace tokamak::cpu
