// Matmul by any CBLAS: sgemm straight into C where possible; bf16 operands are widened and bf16 results made in the
// workspace.
#include "backend/cpu/matmul/elements.h"
#include "base/parallel.h"

#include <cblas.h>

namespace tokamak::cpu {

struct Matmul::Impl {
  MatmulShape shape;
  MatmulOptions options;

  // Floats of the workspace: both operands of one product when they are bf16, its result when C is.
  int64_t rows_a() const { return shape.trans_a ? shape.k : shape.m; }
  int64_t rows_b() const { return shape.trans_b ? shape.n : shape.k; }
  int64_t floats_a() const { return options.a == DType::kF32 ? 0 : rows_a() * shape.lda; }
  int64_t floats_b() const { return options.b == DType::kF32 ? 0 : rows_b() * shape.ldb; }
  int64_t floats_c() const { return options.output == DType::kF32 ? 0 : shape.m * shape.ldc; }
  size_t workspace_bytes() const { return size_t(floats_a() + floats_b() + floats_c()) * sizeof(float); }
};

namespace {

// The last row may end at its last column: nothing behind it is read.
const float* widened(const void* data, int64_t first, int64_t rows, int64_t cols, int64_t ld, float* to) {
  const Bf16* from = static_cast<const Bf16*>(data) + first;
  parallel_for(rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t j = 0; j < cols; ++j) to[r * ld + j] = to_float(from[r * ld + j]);
  });
  return to;
}

}  // namespace

Matmul::Matmul(const MatmulShape& shape, const MatmulOptions& options) : impl_(new Impl{shape.filled(), options}) {
  check_options(options);
}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;

bool Matmul::supports(const MatmulOptions& options) { return has_elements(options); }

size_t Matmul::workspace_bytes(const MatmulShape& shape, const MatmulOptions& options) {
  return Matmul::Impl{shape.filled(), options}.workspace_bytes();
}
size_t Matmul::workspace_bytes() const { return impl_->workspace_bytes(); }
std::string Matmul::implementation() const { return "cblas sgemm"; }

void Matmul::run(const void* a, const void* b, void* c, void* workspace) const {
  const MatmulShape& s = impl_->shape;
  const MatmulOptions& o = impl_->options;
  bool wide_a = o.a == DType::kF32, wide_b = o.b == DType::kF32, wide_out = o.output == DType::kF32;
  float* wa = static_cast<float*>(workspace);
  float *wb = wa + impl_->floats_a(), *wc = wb + impl_->floats_b();
  for (int64_t i = 0; i < s.batch; ++i) {
    int64_t first_a = i * s.stride_a, first_b = i * s.stride_b, first_c = i * s.stride_c;
    const float* pa = wide_a ? static_cast<const float*>(a) + first_a
                             : widened(a, first_a, impl_->rows_a(), s.trans_a ? s.m : s.k, s.lda, wa);
    const float* pb = wide_b ? static_cast<const float*>(b) + first_b
                             : widened(b, first_b, impl_->rows_b(), s.trans_b ? s.k : s.n, s.ldb, wb);
    float* pc = wide_out ? static_cast<float*>(c) + first_c : wc;
    cblas_sgemm(CblasRowMajor, s.trans_a ? CblasTrans : CblasNoTrans, s.trans_b ? CblasTrans : CblasNoTrans, int(s.m),
                int(s.n), int(s.k), 1.0f, pa, int(s.lda), pb, int(s.ldb), 0.0f, pc, int(s.ldc));
    if (wide_out) continue;
    parallel_for(s.m, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t j = 0; j < s.n; ++j) write_from_float(c, o.output, first_c + r * s.ldc + j, pc[r * s.ldc + j]);
    });
  }
}

}  // namespace tokamak::cpu
