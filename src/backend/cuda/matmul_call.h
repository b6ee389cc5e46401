// One matmul as cuBLASLt sees it. Ours is row-major and the library's column-major, so that it gets C^T = op(B)^T
// op(A)^T: its A is our b, its rows are our N, and nothing is ever transposed in memory.
// https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api
#pragma once

#include "backend/cuda/check.h"
#include "backend/cuda/matmul_problem.h"

#include <optional>
#include <vector>

namespace tokamak::cuda {

/// How cuBLASLt computes a problem.
struct MatmulAlgorithm {
  cublasLtMatmulAlgo_t algorithm{};
  int64_t workspace_bytes = 0;
};

/// Operands in the device's memory, aligned to 64 bytes; null where the problem has none.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* addend = nullptr;  // may be the output
  void* output = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;  // read by gelu_grad, else written
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
};

class MatmulCall {
 public:
  /// Throws CudaError when the library has no descriptors for the problem.
  explicit MatmulCall(const MatmulProblem& problem);
  ~MatmulCall();
  MatmulCall(const MatmulCall&) = delete;
  MatmulCall& operator=(const MatmulCall&) = delete;

  /// What the library suggests, its favourite first: at most `count`, which give the same bits in every run. Empty when
  /// it does not support the problem.
  std::vector<MatmulAlgorithm> candidates(cublasLtHandle_t handle, int64_t workspace_limit, int count) const;

  /// The algorithm with the workspace that it needs; nothing when it does not fit the problem or the device.
  std::optional<MatmulAlgorithm> check(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm) const;

  void run(cublasLtHandle_t handle, const MatmulOperands& operands, const MatmulAlgorithm& algorithm, void* workspace,
           cudaStream_t stream);

  const MatmulProblem& problem() const { return problem_; }

 private:
  void describe_operation();
  void describe_operands();
  void set_pointers(const MatmulOperands& operands);

  MatmulProblem problem_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, output_ = nullptr;  // our a and b
};

}  // namespace tokamak::cuda
