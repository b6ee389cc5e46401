// What a kernel for matmuls is asked for, as plain data: from a matmul node, or from a fused_matmul, whose body
// is one of
//
//   add(mm, bias)                   bias: a vector of N
//   gelu(add(mm, bias))             one result, or two: the sum (what GELU is applied to) and then its GELU
//   gelu_grad(pre, mm)              pre: an argument of the product's shape; one result, or two: that, and the sums of
//                                   it over the batch and M, in f32
//   cast(mm, f32)                   16-bit operands, f32 result
//   add(c, mm), add(c, cast(mm, f32))   c: an argument of the result's type; in place where the result lies there
//
// with mm = matmul(a, b) and operands of an add in either order. Reshapes may stand before every use and every result.
// Nothing here needs a device. Tests: tests/backend/cuda/matmul_problem_test.cpp
#pragma once

#include "graph/graph.h"

namespace tokamak::cuda {

/// What is done with the product before it is stored.
enum class MatmulEpilogue : uint8_t {
  kNone,
  kBias,          // + vector of N
  kBiasGelu,      // GELU (tanh form) of that
  kBiasGeluAux,   // and the sum stored as well
  kGeluGrad,      // times the derivative of GELU at a stored matrix
  kGeluGradSums,  // and the sums of that over the batch and M; cuBLASLt has no such matmul
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

/// A problem and where its operands are: positions among the node's inputs and outputs; -1: there is none.
struct MatmulNode {
  MatmulProblem problem;
  int a = 0, b = 1;
  int bias = -1;         // input
  int addend = -1;       // input: `c`
  int aux_input = -1;    // input: `pre` of gelu_grad
  int aux_output = -1;   // output: the sum under GELU
  int sums_output = -1;  // output: the sums over the batch and M, N of f32
  int output = 0;
};

/// Throws InternalError for operands that are not of a float type.
MatmulNode read_matmul(const Graph& graph, const Node& node);

/// Throws InternalError, naming the op, when the body has none of the forms above.
MatmulNode read_matmul_group(const Node& group);

}  // namespace tokamak::cuda
