// cuBLASLt and the choice of its algorithms. A choice is made once per problem: read from the disk, else timed, else
// (no memory for that) the library's favourite.
#pragma once

#include "backend/cuda/matmul_cache.h"
#include "backend/cuda/matmul_tuner.h"

#include <future>
#include <map>

namespace tokamak::cuda {

/// Workspace that the algorithm for a problem may take, a rule of thumb: partial sums in f32 where the output has few
/// tiles, as many as give three waves of blocks work. On an H200 the library took up to two and a half.
int64_t expected_workspace_bytes(const MatmulProblem& problem, int multiprocessors);

class MatmulLibrary {
 public:
  /// Begins to load the library in the background. `cache`: folder of the choices; empty: none.
  MatmulLibrary(const DeviceInfo& device, cudaStream_t stream, const std::filesystem::path& cache);
  ~MatmulLibrary();
  MatmulLibrary(const MatmulLibrary&) = delete;
  MatmulLibrary& operator=(const MatmulLibrary&) = delete;

  /// Waits until the library is loaded.
  cublasLtHandle_t handle() { return handle_.get(); }

  /// Whether the library has an algorithm for the problem on this device.
  bool supports(const MatmulCall& call);

  /// Throws CudaError that names the problem when the library does not support it.
  MatmulAlgorithm choose(MatmulCall& call);

  /// Shares of a step's time by problem: how long the search for each may take. Others get a search of middle length.
  void expect(const std::map<std::string, double>& shares);

  /// To be called when choices have been made: frees the operands that were timed on and writes the choices down.
  void end_tuning();

  /// See KernelTuning.
  std::string choices() const { return cache_.print_used(); }
  bool adopt_choices(const std::string& text) { return cache_.adopt(text); }

 private:
  std::optional<MatmulAlgorithm> remembered(const MatmulCall& call);
  MatmulAlgorithm make_choice(MatmulCall& call);
  SearchEffort effort(const std::string& problem) const;

  std::shared_future<cublasLtHandle_t> handle_;
  MatmulCache cache_;
  MatmulTuner tuner_;
  double loading_left_;                   // seconds that searches may still take for loading code
  std::map<std::string, double> shares_;  // by problem
  std::map<std::string, MatmulAlgorithm> chosen_;
};

}  // namespace tokamak::cuda
