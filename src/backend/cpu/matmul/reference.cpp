// Matmul by plain blocked loops over parallel_for: nothing in it that a sanitizer cannot see, and no library.
#include "backend/cpu/matmul/elements.h"
#include "base/parallel.h"

#include <algorithm>

namespace tokamak::cpu {

struct Matmul::Impl {
  MatmulShape shape;
  MatmulOptions options;
};

Matmul::Matmul(const MatmulShape& shape, const MatmulOptions& options) : impl_(new Impl{shape.filled(), options}) {
  check_options(options);
}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;

bool Matmul::supports(const MatmulOptions& options) { return has_elements(options); }

size_t Matmul::workspace_bytes(const MatmulShape&, const MatmulOptions&) { return 0; }
size_t Matmul::workspace_bytes() const { return 0; }
std::string Matmul::implementation() const { return "reference loops"; }

void Matmul::run(const void* a, const void* b, void* c, void*) const {
  constexpr int64_t kColumns = 256;  // sums of a piece of a row, on the stack
  const MatmulShape& s = impl_->shape;
  const MatmulOptions& o = impl_->options;
  int64_t a_row = s.trans_a ? 1 : s.lda, a_k = s.trans_a ? s.lda : 1;
  int64_t b_col = s.trans_b ? s.ldb : 1, b_k = s.trans_b ? 1 : s.ldb;
  parallel_for(s.batch * s.m, 1, [&](int64_t begin, int64_t end, int) {
    float sums[kColumns];
    for (int64_t row = begin; row < end; ++row) {
      int64_t batch = row / s.m, i = row % s.m;
      int64_t at_a = batch * s.stride_a + i * a_row, at_b = batch * s.stride_b, at_c = batch * s.stride_c + i * s.ldc;
      for (int64_t j0 = 0; j0 < s.n; j0 += kColumns) {
        int64_t j1 = std::min(s.n, j0 + kColumns);
        std::fill(sums, sums + kColumns, 0.0f);
        for (int64_t k = 0; k < s.k; ++k) {
          float x = read_as_float(a, o.a, at_a + k * a_k);
          for (int64_t j = j0; j < j1; ++j) sums[j - j0] += x * read_as_float(b, o.b, at_b + k * b_k + j * b_col);
        }
        for (int64_t j = j0; j < j1; ++j) write_from_float(c, o.output, at_c + j, sums[j - j0]);
      }
    }
  });
}

}  // namespace tokamak::cpu
