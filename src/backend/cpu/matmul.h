// Matrix products on plain pointers, prepared once for a shape and run many times. One implementation is built:
// matmul/onednn.cpp, matmul/cblas.cpp or matmul/reference.cpp (our own loops, for ThreadSanitizer).
// Results are bit-identical from run to run, with oneDNN on any number of threads. Tests:
// tests/backend/cpu/matmul_test.cpp.
#pragma once

#include "graph/type.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tokamak::cpu {

/// C (m, n) = op(A) (m, k) op(B) (k, n) for each of `batch` matrices. Sizes and strides are in elements.
struct MatmulShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool trans_a = false, trans_b = false;             // A lies as (k, m); B lies as (n, k)
  int64_t lda = 0, ldb = 0, ldc = 0;                 // from one row, as it lies, to the next; 0: rows lie dense
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // from one matrix of the batch to the next; 0: matrices lie dense

  /// The same shape with every 0 above filled in.
  MatmulShape filled() const;
};

/// Types of the operands. Sums are kept in f32. Nothing is done to the product before it is stored: a library would do
/// it to the sum before that is rounded, or by functions of its own, and what is computed again would have other bits.
struct MatmulOptions {
  DType a = DType::kF32, b = DType::kF32;  // f32 or bf16
  DType output = DType::kF32;              // of C: f32, or bf16 where A and B are
};

class Matmul {
 public:
  explicit Matmul(const MatmulShape& shape, const MatmulOptions& options = {});
  ~Matmul();
  Matmul(Matmul&&) noexcept;
  Matmul& operator=(Matmul&&) noexcept;

  /// Whether the implementation multiplies such operands.
  static bool supports(const MatmulOptions& options);

  /// Bytes that run() needs as workspace; 0: none.
  size_t workspace_bytes() const;
  /// The same of a product that is not prepared; 0 where the library does not know it.
  static size_t workspace_bytes(const MatmulShape& shape, const MatmulOptions& options);

  /// Name of the kernel that will run, for explain.
  std::string implementation() const;

  /// The workspace may be reused at once for anything else.
  void run(const void* a, const void* b, void* c, void* workspace) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace tokamak::cpu
