#include "backend/cuda/matmul_tuner.h"

#include "base/error.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

namespace tokamak::cuda {
namespace {

constexpr double kSlower = 1.25;                     // this much above the best is out of the race
constexpr size_t kAtLeast = 3, kFinalists = 4;       // candidates
constexpr int64_t kSpareBytes = int64_t(256) << 20;  // of the device's memory, left to others
constexpr int64_t kPieceAlignment = 256;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

int64_t free_bytes() {
  size_t free = 0, total = 0;
  TOKAMAK_CUDA(cudaMemGetInfo(&free, &total));
  return int64_t(free);
}

// Halves with random sign and mantissa, between 1/8 and 2 as bf16 and between 1.5 and 2 as f16; two are an f32 like
// the upper one. Zeros would be timed wrongly: they draw less power, and the clock rises. The length is no multiple of
// a matrix's row, so that rows differ.
std::vector<uint16_t> random_halves() {
  std::vector<uint16_t> halves((1 << 19) + 352);
  std::mt19937 random(1);
  for (uint16_t& half : halves) half = uint16_t(0x3e00 | (random() & 0x81ff));
  return halves;
}

// The time between two places of the stream.
struct Interval {
  EventHandle begin{true}, end{true};

  // After waiting.
  double seconds() {
    end.wait();
    float milliseconds = 0;
    TOKAMAK_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    return double(milliseconds) * 1e-3;
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

struct MatmulTuner::Trial {
  size_t candidate;
  const MatmulAlgorithm* algorithm;
  double seconds;
};

std::optional<TimedAlgorithm> MatmulTuner::fastest(cublasLtHandle_t handle, MatmulCall& call,
                                                   const std::vector<MatmulAlgorithm>& candidates) {
  int64_t workspace = 0;
  for (const MatmulAlgorithm& candidate : candidates) workspace = std::max(workspace, candidate.workspace_bytes);
  if (!lay_out(call.problem(), workspace)) return std::nullopt;
  std::vector<Trial> trials = try_all(handle, call, candidates);
  if (trials.empty()) return std::nullopt;
  TimedAlgorithm result;
  result.favourite_seconds = trials[0].seconds;
  result.tried = trials.size();
  auto faster = [](const Trial& x, const Trial& y) {
    return x.seconds != y.seconds ? x.seconds < y.seconds : x.candidate < y.candidate;
  };
  std::sort(trials.begin(), trials.end(), faster);
  std::erase_if(trials, [limit = kSlower * trials[0].seconds](const Trial& t) { return t.seconds > limit; });
  if (trials.size() > kFinalists) trials.resize(kFinalists);
  try_finalists(handle, call, trials);
  const Trial& best = *std::min_element(trials.begin(), trials.end(), faster);
  result.algorithm = *best.algorithm;
  result.seconds = best.seconds;
  return result;
}

// A candidate's first run may load its code. The timed one is enqueued while that is under way, so that nothing the
// host does falls between the two events.
std::vector<MatmulTuner::Trial> MatmulTuner::try_all(cublasLtHandle_t handle, MatmulCall& call,
                                                     const std::vector<MatmulAlgorithm>& candidates) {
  std::vector<Trial> trials;
  Interval timed;
  Stopwatch watch;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (trials.size() >= kAtLeast && watch.seconds() > effort_.try_seconds) break;
    try {
      run(handle, call, candidates[i]);
      timed.begin.record(stream_);
      run(handle, call, candidates[i]);
      timed.end.record(stream_);
      trials.push_back({i, &candidates[i], timed.seconds()});
    } catch (const CudaError&) {
      // The library refuses some of its own suggestions when it comes to it.
    }
  }
  return trials;
}

// In turns, so that a change of the clock meets all alike; nobody waits in between.
void MatmulTuner::try_finalists(cublasLtHandle_t handle, MatmulCall& call, std::vector<Trial>& finalists) {
  if (finalists.size() < 2) return;
  double round = 0;
  for (const Trial& trial : finalists) round += trial.seconds;
  int rounds = std::clamp(int(effort_.final_seconds / round), 1, effort_.rounds);
  std::vector<Interval> timed(finalists.size() * size_t(rounds));
  for (size_t i = 0; i < timed.size(); ++i) {
    timed[i].begin.record(stream_);
    run(handle, call, *finalists[i % finalists.size()].algorithm);
    timed[i].end.record(stream_);
  }
  for (size_t f = 0; f < finalists.size(); ++f) {
    std::vector<double> seconds;
    for (size_t i = f; i < timed.size(); i += finalists.size()) seconds.push_back(timed[i].seconds());
    finalists[f].seconds = median(seconds);
  }
}

void MatmulTuner::run(cublasLtHandle_t handle, MatmulCall& call, const MatmulAlgorithm& algorithm) {
  call.run(handle, operands_, algorithm, workspace_, stream_);
}

bool MatmulTuner::lay_out(const MatmulProblem& p, int64_t workspace_bytes) {
  int64_t total = 0;
  auto piece = [&](int64_t bytes) {
    int64_t at = total;
    total += (bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
    return at;
  };
  int64_t a = piece(p.a_bytes()), b = piece(p.b_bytes()), output = piece(p.output_bytes());
  int64_t bias = piece(p.bias_bytes()), aux = piece(p.aux_bytes()), workspace = piece(workspace_bytes);
  if (scratch_.bytes() < total) {
    release();
    if (total > free_bytes() - kSpareBytes) return false;
    scratch_ = DeviceBuffer(total);
  }
  fill(total);  // also over what the last problem left
  char* base = static_cast<char*>(scratch_.get());
  operands_ = {base + a, base + b, base + output, base + output, base + bias, base + aux};
  workspace_ = base + workspace;
  return true;
}

// The first piece comes from the host, the rest is copied from what is there already.
void MatmulTuner::fill(int64_t bytes) {
  if (random_halves_.empty()) random_halves_ = random_halves();
  char* base = static_cast<char*>(scratch_.get());
  int64_t filled = std::min(int64_t(random_halves_.size() * sizeof random_halves_[0]), bytes);
  TOKAMAK_CUDA(cudaMemcpyAsync(base, random_halves_.data(), size_t(filled), cudaMemcpyHostToDevice, stream_));
  while (filled < bytes) {
    int64_t more = std::min(filled, bytes - filled);
    TOKAMAK_CUDA(cudaMemcpyAsync(base + filled, base, size_t(more), cudaMemcpyDeviceToDevice, stream_));
    filled += more;
  }
}

}  // namespace tokamak::cuda
