// Times the algorithms that cuBLASLt suggests for a matmul and says which is the fastest. The library's own order is a
// guess: over GPT-2 124M's matmuls its favourite is some 5% slower than the best of its list.
#pragma once

#include "backend/cuda/device.h"
#include "backend/cuda/matmul_call.h"

namespace tokamak::cuda {

struct TimedAlgorithm {
  MatmulAlgorithm algorithm;
  double seconds = 0;
  double favourite_seconds = 0;  // of the library's first suggestion that runs
  size_t tried = 0;              // candidates
};

/// How long the search for one problem may take.
struct TuningEffort {
  double try_seconds = 20e-3;    // of one timed run for each candidate, three candidates at least,
  double final_seconds = 10e-3;  // and of more for the fastest of them, one run each at least
  int rounds = 5;                // of those, at most
};

class MatmulTuner {
 public:
  explicit MatmulTuner(cudaStream_t stream, TuningEffort effort = {}) : stream_(stream), effort_(effort) {}

  /// The fastest of the candidates on random operands; nothing when the device has no room for those. Waits for the
  /// stream.
  std::optional<TimedAlgorithm> fastest(cublasLtHandle_t handle, MatmulCall& call,
                                        const std::vector<MatmulAlgorithm>& candidates);

  /// Operands are kept from problem to problem; this gives their memory back.
  void release() { scratch_ = DeviceBuffer(); }

 private:
  struct Trial;

  bool lay_out(const MatmulProblem& problem, int64_t workspace_bytes);
  void fill(int64_t bytes);
  void run(cublasLtHandle_t handle, MatmulCall& call, const MatmulAlgorithm& algorithm);
  std::vector<Trial> try_all(cublasLtHandle_t handle, MatmulCall& call, const std::vector<MatmulAlgorithm>& candidates);
  void try_finalists(cublasLtHandle_t handle, MatmulCall& call, std::vector<Trial>& finalists);

  cudaStream_t stream_;
  TuningEffort effort_;
  DeviceBuffer scratch_;
  MatmulOperands operands_;
  void* workspace_ = nullptr;
  std::vector<uint16_t> random_halves_;
};

}  // namespace tokamak::cuda
