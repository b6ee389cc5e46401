#include "backend/cuda/matmul_tuner.h"

#include "base/divide.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <random>

namespace tokamak::cuda {
namespace {

constexpr double kLoads = 100e-6;                    // seconds: a launch that takes the host this long loads code
constexpr int64_t kMostOperands = 16;                // sets of them
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

int64_t l2_bytes() {
  int device = 0, bytes = 0;
  TOKAMAK_CUDA(cudaGetDevice(&device));
  TOKAMAK_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device));
  return bytes;
}

int64_t padded(int64_t bytes) { return round_up(bytes, kPieceAlignment); }

// Halves with random sign and mantissa, between 1/8 and 2 as bf16 and between 1.5 and 2 as f16; two are an f32 like
// the upper one. For operands of eight bits, two of them: between 1/8 and 4. Zeros would be timed wrongly: they draw
// less power, and the clock rises. The length is no multiple of a matrix's row, so that rows differ.
std::vector<uint16_t> random_halves(bool float8) {
  std::vector<uint16_t> halves((1 << 19) + 352);
  std::mt19937 random(1);
  for (uint16_t& half : halves)
    half = float8 ? uint16_t(0x3030 | (random() & 0x8f8f)) : uint16_t(0x3e00 | (random() & 0x81ff));
  return halves;
}

// The operands of one matmul as pieces of one block of memory; an addend is added to in place.
class OperandPieces {
 public:
  explicit OperandPieces(const MatmulProblem& p)
      : a_(0), b_(padded(p.a_bytes())), output_(b_ + padded(p.b_bytes())), bias_(output_ + padded(p.output_bytes())),
        aux_(bias_ + padded(p.bias_bytes())), scale_(aux_ + padded(p.aux_bytes())),
        total_(scale_ + (p.scaled ? kPieceAlignment : 0)) {}

  int64_t total() const { return total_; }  // bytes
  MatmulOperands at(char* base) const {
    return {base + a_,    base + b_,   base + output_, base + output_,
            base + bias_, base + aux_, base + scale_,  base + scale_};
  }

 private:
  int64_t a_, b_, output_, bias_, aux_, scale_, total_;
};

// One run of a candidate, begun. What it takes is known after waiting for it.
class PendingRun {
 public:
  // The first run of a candidate may load its code, and the device waits for the host: it is run again, behind that
  // one, so that nothing the host does falls between the two events.
  template <typename Launch>
  PendingRun(cudaStream_t stream, const Launch& launch) {
    try {
      if (double host = enqueue(stream, launch); host > kLoads) {
        loading_ = host;
        enqueue(stream, launch);
      }
    } catch (const CudaError&) {  // the library refuses some of its own suggestions when it comes to it
      refused_ = true;
    }
  }

  CandidateRun wait() {
    if (refused_) return {std::numeric_limits<double>::infinity(), loading_};
    end_.wait();
    float milliseconds = 0;
    TOKAMAK_CUDA(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return {double(milliseconds) * 1e-3, loading_};
  }

 private:
  // Seconds of the host.
  template <typename Launch>
  double enqueue(cudaStream_t stream, const Launch& launch) {
    begin_.record(stream);
    Stopwatch watch;
    launch();
    double host = watch.seconds();
    end_.record(stream);
    return host;
  }

  EventHandle begin_{true}, end_{true};
  double loading_ = 0;
  bool refused_ = false;
};

}  // namespace

MatmulTuner::MatmulTuner(cudaStream_t stream) : stream_(stream) {}

std::optional<SearchResult> MatmulTuner::fastest(cublasLtHandle_t handle, MatmulCall& call,
                                                 const std::vector<MatmulAlgorithm>& candidates,
                                                 const SearchEffort& effort) {
  std::vector<int64_t> workspaces;
  for (const MatmulAlgorithm& candidate : candidates) workspaces.push_back(candidate.workspace_bytes);
  if (workspaces.empty() || !lay_out(call.problem(), *std::max_element(workspaces.begin(), workspaces.end())))
    return std::nullopt;
  size_t turn = 0;
  return find_fastest(workspaces, effort, [&](const std::vector<size_t>& turns) {
    std::deque<PendingRun> pending;
    for (size_t candidate : turns)
      pending.emplace_back(stream_, [&] {
        call.run(handle, operands_[turn++ % operands_.size()], candidates[candidate], workspace_, stream_);
      });
    std::vector<CandidateRun> runs;
    for (PendingRun& run : pending) runs.push_back(run.wait());
    return runs;
  });
}

// As many sets of operands as it takes for one to have left the L2 cache before it is used again: in a step other
// kernels run in between, too.
bool MatmulTuner::lay_out(const MatmulProblem& p, int64_t workspace_bytes) {
  OperandPieces pieces(p);
  if (cache_bytes_ == 0) cache_bytes_ = l2_bytes();
  int64_t sets = std::clamp<int64_t>(2 * cache_bytes_ / std::max<int64_t>(pieces.total(), 1) + 1, 1, kMostOperands);
  int64_t total = sets * pieces.total() + padded(workspace_bytes);
  if (!reserve(total)) return false;
  fill(total, is_float8(p.a));  // also over what the last problem left
  char* base = static_cast<char*>(scratch_.get());
  operands_.clear();
  for (int64_t i = 0; i < sets; ++i) operands_.push_back(pieces.at(base + i * pieces.total()));
  workspace_ = base + sets * pieces.total();
  return true;
}

bool MatmulTuner::reserve(int64_t bytes) {
  if (scratch_.bytes() >= bytes) return true;
  release();
  if (bytes > free_bytes() - kSpareBytes) return false;
  scratch_ = DeviceBuffer(bytes);
  return true;
}

// The first piece comes from the host, the rest is copied from what is there already.
void MatmulTuner::fill(int64_t bytes, bool float8) {
  std::vector<uint16_t>& random = float8 ? random_float8_ : random_halves_;
  if (random.empty()) random = random_halves(float8);
  char* base = static_cast<char*>(scratch_.get());
  int64_t filled = std::min(int64_t(random.size() * sizeof random[0]), bytes);
  TOKAMAK_CUDA(cudaMemcpyAsync(base, random.data(), size_t(filled), cudaMemcpyHostToDevice, stream_));
  while (filled < bytes) {
    int64_t more = std::min(filled, bytes - filled);
    TOKAMAK_CUDA(cudaMemcpyAsync(base + filled, base, size_t(more), cudaMemcpyDeviceToDevice, stream_));
    filled += more;
  }
}

}  // namespace tokamak::cuda
