#include "backend/cpu/matmul.h"

namespace tokamak::cpu {

MatmulShape MatmulShape::filled() const {
  MatmulShape s = *this;
  auto fill = [](int64_t& value, int64_t dense) { value = value == 0 ? dense : value; };
  fill(s.lda, trans_a ? m : k);
  fill(s.ldb, trans_b ? k : n);
  fill(s.ldc, n);
  fill(s.stride_a, (trans_a ? k : m) * s.lda);
  fill(s.stride_b, (trans_b ? n : k) * s.ldb);
  fill(s.stride_c, m * s.ldc);
  return s;
}

}  // namespace tokamak::cpu
