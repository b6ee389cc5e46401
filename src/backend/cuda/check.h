// Every call of a CUDA library goes through TOKAMAK_CUDA: a failure is an exception that names the call and what the
// library said of it. Which op was under way is added by whoever runs a program (exec/program.cpp).
#pragma once

#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvrtc.h>

#include <stdexcept>
#include <string>

namespace tokamak::cuda {

/// A call of a CUDA library failed.
class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string describe(cudaError_t status);
std::string describe(CUresult status);
std::string describe(nvrtcResult status);
std::string describe(cublasStatus_t status);

[[noreturn]] void throw_cuda_error(const char* call, const std::string& what);

template <typename Status>
void check_cuda(Status status, const char* call) {
  if (int(status) != 0) throw_cuda_error(call, describe(status));
}

}  // namespace tokamak::cuda

#define TOKAMAK_CUDA(call) ::tokamak::cuda::check_cuda((call), #call)
