#include "backend/cuda/matmul_library.h"

#include "base/error.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr int64_t kWorkspaceLimit = int64_t(128) << 20;  // room for the partial sums of a weight gradient
constexpr int kCandidates = 32;

cublasLtHandle_t create_handle(int ordinal) {
  TOKAMAK_CUDA(cudaSetDevice(ordinal));
  cublasLtHandle_t handle = nullptr;
  TOKAMAK_CUDA(cublasLtCreate(&handle));
  return handle;
}

MatmulChoice to_choice(const TimedAlgorithm& timed) {
  MatmulChoice choice;
  std::copy_n(timed.algorithm.algorithm.data, choice.algorithm.size(), choice.algorithm.begin());
  choice.seconds = timed.seconds;
  return choice;
}

}  // namespace

int64_t expected_workspace_bytes(const MatmulProblem& p, int multiprocessors) {
  constexpr int64_t kTileRows = 128, kTileColumns = 256, kWaves = 3, kTerms = 256;  // of a part of the sum, at least
  int64_t tiles = p.batch * ((p.m + kTileRows - 1) / kTileRows) * ((p.n + kTileColumns - 1) / kTileColumns);
  int64_t parts = std::min(kWaves * multiprocessors / std::max<int64_t>(tiles, 1), p.k / kTerms);
  if (parts < 2) return 0;
  return std::min(parts * p.batch * p.m * p.n * int64_t(sizeof(float)), kWorkspaceLimit);
}

MatmulLibrary::MatmulLibrary(const DeviceInfo& device, cudaStream_t stream, const std::filesystem::path& cache)
    : handle_(std::async(std::launch::async, create_handle, device.ordinal).share()),
      cache_(cache, {device.name, uint64_t(cublasLtGetVersion())}), tuner_(stream) {}

MatmulLibrary::~MatmulLibrary() {
  cache_.save();
  try {
    cublasLtDestroy(handle());
  } catch (const CudaError&) {
    // It was never made.
  }
}

bool MatmulLibrary::supports(const MatmulCall& call) { return !call.candidates(handle(), kWorkspaceLimit, 1).empty(); }

MatmulAlgorithm MatmulLibrary::choose(MatmulCall& call) {
  auto at = chosen_.find(call.problem().key());
  if (at == chosen_.end()) at = chosen_.emplace(call.problem().key(), make_choice(call)).first;
  return at->second;
}

MatmulAlgorithm MatmulLibrary::make_choice(MatmulCall& call) {
  if (std::optional<MatmulAlgorithm> algorithm = remembered(call)) return *algorithm;
  std::vector<MatmulAlgorithm> candidates = call.candidates(handle(), kWorkspaceLimit, kCandidates);
  if (candidates.empty())
    throw_cuda_error("cublasLtMatmulAlgoGetHeuristic",
                     fmt::format("cuBLASLt {} has no algorithm for {}; for a GPU newer than that, build with a newer "
                                 "CUDA toolkit",
                                 cublasLtGetVersion(), call.problem().key()));
  // Not written down when there is no memory to time on: the next start may have it.
  std::optional<TimedAlgorithm> fastest = tuner_.fastest(handle(), call, candidates);
  if (!fastest) return candidates[0];
  cache_.put(call.problem().key(), to_choice(*fastest));
  return fastest->algorithm;
}

std::optional<MatmulAlgorithm> MatmulLibrary::remembered(const MatmulCall& call) {
  const MatmulChoice* choice = cache_.find(call.problem().key());
  if (!choice) return std::nullopt;
  cublasLtMatmulAlgo_t algorithm{};
  std::copy(choice->algorithm.begin(), choice->algorithm.end(), algorithm.data);
  std::optional<MatmulAlgorithm> checked = call.check(handle(), algorithm);
  return checked && checked->workspace_bytes <= kWorkspaceLimit ? checked : std::nullopt;
}

void MatmulLibrary::end_tuning() {
  cache_.save();
  tuner_.release();
}

}  // namespace tokamak::cuda
