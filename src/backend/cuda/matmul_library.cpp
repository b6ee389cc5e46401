#include "backend/cuda/matmul_library.h"

#include "base/divide.h"
#include "base/error.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

constexpr int64_t kWorkspaceLimit = int64_t(128) << 20;  // room for the partial sums of a weight gradient
// Loading code is for the searches after it as well: beside what the runs of each may take, all have this.
constexpr double kLoadingSeconds = 0.1;

cublasLtHandle_t create_handle(int ordinal) {
  TOKAMAK_CUDA(cudaSetDevice(ordinal));
  cublasLtHandle_t handle = nullptr;
  TOKAMAK_CUDA(cublasLtCreate(&handle));
  return handle;
}

MatmulChoice to_choice(const MatmulProblem& problem, const MatmulAlgorithm& best, const SearchResult& found) {
  auto tflops = [&](double seconds) { return seconds > 0 ? problem.flops() / seconds * 1e-12 : 0; };
  MatmulChoice choice;
  std::copy_n(best.algorithm.data, choice.algorithm.size(), choice.algorithm.begin());
  choice.seconds = found.seconds;
  choice.tflops = tflops(found.seconds);
  choice.runner_up_tflops = tflops(found.runner_up_seconds);
  choice.tried = int64_t(found.tried);
  return choice;
}

}  // namespace

int64_t expected_workspace_bytes(const MatmulProblem& p, int multiprocessors) {
  constexpr int64_t kTileRows = 128, kTileColumns = 256, kWaves = 3, kTerms = 256;  // of a part of the sum, at least
  int64_t tiles = p.batch * ceil_div(p.m, kTileRows) * ceil_div(p.n, kTileColumns);
  int64_t parts = std::min(kWaves * multiprocessors / std::max<int64_t>(tiles, 1), p.k / kTerms);
  if (parts < 2) return 0;
  return std::min(parts * p.batch * p.m * p.n * int64_t(sizeof(float)), kWorkspaceLimit);
}

MatmulLibrary::MatmulLibrary(const DeviceInfo& device, cudaStream_t stream, const std::filesystem::path& cache)
    : handle_(std::async(std::launch::async, create_handle, device.ordinal).share()),
      cache_(cache, {device.name, uint64_t(cublasLtGetVersion())}), tuner_(stream), loading_left_(kLoadingSeconds) {}

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
  std::string problem = call.problem().key();
  SearchEffort limits = effort(problem);
  std::vector<MatmulAlgorithm> candidates = call.candidates(handle(), kWorkspaceLimit, int(limits.candidates));
  if (candidates.empty())
    throw_cuda_error("cublasLtMatmulAlgoGetHeuristic",
                     fmt::format("cuBLASLt {} has no algorithm for {}; for a GPU newer than that, build with a newer "
                                 "CUDA toolkit",
                                 cublasLtGetVersion(), problem));
  // Not written down when there is no memory to time on: the next start may have it.
  std::optional<SearchResult> found = tuner_.fastest(handle(), call, candidates, limits);
  if (!found) return candidates[0];
  loading_left_ = std::max(0.0, loading_left_ - found->loading_seconds);
  cache_.put(problem, to_choice(call.problem(), candidates[found->best], *found));
  return candidates[found->best];
}

void MatmulLibrary::expect(const std::map<std::string, double>& shares) {
  for (const auto& [problem, share] : shares) shares_[problem] = share;
}

SearchEffort MatmulLibrary::effort(const std::string& problem) const {
  auto share = shares_.find(problem);
  SearchEffort effort = share == shares_.end() ? SearchEffort() : effort_for(share->second);
  effort.loading_seconds = loading_left_ / 2;  // something is left to the next
  return effort;
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
