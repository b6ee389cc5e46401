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
  DType input = DType::kF32, output = DType::kF32;  // f32, bf16 or f16; sums are always f32
  bool tf32 = false;                                // f32 operands may be rounded to TF32
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  bool accumulate = false;  // the product is added to a matrix of the output's type
  MatmulEpilogue epilogue = MatmulEpilogue::kNone;

  /// "bf16 65536x2304x768 nt +bias", M x N x K: what a choice is remembered by, and what users are shown.
  std::string key() const;

  double flops() const { return 2.0 * double(batch) * double(m) * double(n) * double(k); }
  int64_t a_bytes() const { return batch * m * k * dtype_bytes(input); }
  int64_t b_bytes() const { return batch * k * n * dtype_bytes(input); }
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

/// A matmul as its node has it, and as the library is asked for it.
struct MatmulNode {
  MatmulProblem problem;
  MatmulForm form;
};

/// Of a matmul or a fused_matmul. Throws InternalError for operands that are not of a float type.
MatmulNode matmul_node(const Graph& graph, const Node& node);

}  // namespace tokamak::cuda
