// Times the algorithms that cuBLASLt suggests for a matmul and says which is the fastest. The library's own order is a
// guess: over GPT-2 124M's matmuls its favourite is some 5% slower than the best of its list.
#pragma once

#include "backend/cuda/device.h"
#include "backend/cuda/matmul_call.h"
#include "backend/cuda/matmul_search.h"

namespace tokamak::cuda {

class MatmulTuner {
 public:
  explicit MatmulTuner(cudaStream_t stream);

  /// The fastest of the candidates on random operands; nothing when the device has no room for those, or none runs.
  /// Waits for the stream.
  std::optional<SearchResult> fastest(cublasLtHandle_t handle, MatmulCall& call,
                                      const std::vector<MatmulAlgorithm>& candidates, const SearchEffort& effort);

  /// Operands are kept from problem to problem; this gives their memory back.
  void release() { scratch_ = DeviceBuffer(); }

 private:
  bool lay_out(const MatmulProblem& problem, int64_t workspace_bytes);
  bool reserve(int64_t bytes);
  void fill(int64_t bytes, bool float8);

  cudaStream_t stream_;
  int64_t cache_bytes_ = 0;  // the device's L2
  DeviceBuffer scratch_;
  std::vector<MatmulOperands> operands_;  // used in turns
  void* workspace_ = nullptr;
  std::vector<uint16_t> random_halves_, random_float8_;
};

}  // namespace tokamak::cuda
