#include "backend/cuda/check.h"

#include <fmt/core.h>

namespace tokamak::cuda {

std::string describe(cudaError_t status) {
  return fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}
std::string describe(CUresult status) {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(status, &name);
  cuGetErrorString(status, &text);
  return fmt::format("{} ({})", text ? text : "unknown error", name ? name : std::to_string(int(status)));
}
std::string describe(nvrtcResult status) { return nvrtcGetErrorString(status); }
std::string describe(cublasStatus_t status) {
  return fmt::format("{} ({})", cublasLtGetStatusString(status), cublasLtGetStatusName(status));
}

void throw_cuda_error(const char* call, const std::string& what) {
  throw CudaError(fmt::format("[cuda] {} failed: {}", call, what));
}

}  // namespace tokamak::cuda
