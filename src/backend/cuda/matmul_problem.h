// What a kernel for matmuls is asked for, as plain data: from a matmul or a fused_matmul (ops/matmul_form.h). Nothing
// here needs a device. Tests: tests/backend/cuda/matmul_problem_test.cpp
#pragma once

#include "ops/matmul_form.h"

namespace tokamak::cuda {

/// What is done with the product before it is stored.
enum class MatmulEpilogue : uint8_t {
  kNone,
  kBias,          // + vector of N
  kBiasGelu,      // GELU (tanh form) of that
  kBiasGeluAux,   // and the sum stored as well
  kGeluGrad,      // times the derivative of GELU at a stored matrix
  kGeluGradSums,  // and the sums of that over the batch and M; cuBLASLt has no such matmul
  kFunction,      // any other form with a function; nor such
};

/// `batch` times op(a) (M, K) times op(b) (K, N); row-major, dense, one after the other.
struct MatmulProblem {
  NumberFormat a = NumberFormat::kF32, b = NumberFormat::kF32;
  DType accumulator = DType::kF32;
  bool scaled = false;         // both operands have a scale
  DType output = DType::kF32;  // f32, bf16 or f16
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  bool accumulate = false;  // the product is added to a matrix of the output's type
  MatmulEpilogue epilogue = MatmulEpilogue::kNone;

  /// "bf16 65536x2304x768 nt +bias", M x N x K: what a choice is remembered by, and what users are shown. Formats are
  /// "bf16" of both operands and the output, "bf16>f32" with another output, "bf16*f32>f32" with two operands' own.
  std::string key() const;

  double flops() const { return 2.0 * double(batch) * double(m) * double(n) * double(k); }
  int64_t a_bytes() const { return batch * m * k * dtype_bytes(storage_of(a)); }
  int64_t b_bytes() const { return batch * k * n * dtype_bytes(storage_of(b)); }
  int64_t output_bytes() const { return batch * m * n * dtype_bytes(output); }
  int64_t aux_bytes() const {
    bool stored = epilogue == MatmulEpilogue::kBiasGeluAux || is_gelu_grad();
    return stored ? output_bytes() : 0;
  }
  int64_t bias_bytes() const {
    bool biased = epilogue != MatmulEpilogue::kNone && !is_gelu_grad();
    return biased ? n * dtype_bytes(output) : 0;
  }
  bool is_gelu_grad() const {
    return epilogue == MatmulEpilogue::kGeluGrad || epilogue == MatmulEpilogue::kGeluGradSums;
  }
};

/// Whether the library knows the formats: operands in one of them, sums in f32, the output in their type or f32. Of
/// eight bits both operands have a scale and their sums along rows, all sizes are multiples of 16, one of the operands
/// is e4m3, and the output is bf16. Sums of e4m3 alone have the bits that the tensor cores keep, what the library calls
/// fast accumulation; those of gradients (a is e5m2) are in f32.
bool has_library_formats(const MatmulProblem& problem);

/// A matmul as its node has it, and as the library is asked for it.
struct MatmulNode {
  MatmulProblem problem;
  MatmulForm form;
};

/// Of a matmul or a fused_matmul. Throws InternalError for operands that are not of a float type.
MatmulNode matmul_node(const Graph& graph, const Node& node);

}  // namespace tokamak::cuda
