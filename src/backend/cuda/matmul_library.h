// cuBLASLt and the choice of its algorithms. A choice is made once per problem: read from the disk, else timed, else
// (timing switched off, or no memory for it) the library's favourite.
#pragma once

#include "backend/cuda/matmul_cache.h"
#include "backend/cuda/matmul_tuner.h"

#include <future>
#include <map>

namespace tokamak::cuda {

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

  /// Throws CudaError that names the problem when the library does not support it. With `timed` false, always the
  /// library's favourite, whatever the cache says.
  MatmulAlgorithm choose(MatmulCall& call, bool timed);

  /// To be called when choices have been made, before the first run: frees the operands that were timed on and writes
  /// the choices down. Does nothing when there is nothing to do, or while the stream is being recorded.
  void end_tuning();

 private:
  std::optional<MatmulAlgorithm> remembered(const MatmulCall& call);
  MatmulAlgorithm make_choice(MatmulCall& call, bool timed);

  cudaStream_t stream_;
  std::shared_future<cublasLtHandle_t> handle_;
  MatmulCache cache_;
  MatmulTuner tuner_;
  std::map<std::pair<std::string, bool>, MatmulAlgorithm> chosen_;  // by problem and `timed`
};

}  // namespace tokamak::cuda
