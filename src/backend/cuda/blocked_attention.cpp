#include "backend/cuda/blocked_attention.h"

#include "backend/cuda/device_types.h"
#include "backend/cuda/place_source.h"
#include "base/divide.h"
#include "base/dropout_random.h"

#include <fmt/core.h>

#include <type_traits>

namespace tokamak::cuda {
namespace {

// As tokamak::Arguments in kernels/attention.cuh.
struct AttentionArguments {
  int32_t time, heads;
  float scale, kept;
  uint32_t threshold;
  uint64_t stream;
  const void* rng;
  const void* documents;
  const void* rank;
};

// Of `tiles` tiles of rows and one of scores, as laid out in kernels/attention.cuh.
int64_t shared_bytes(int64_t head_dim, int64_t block, int64_t tiles) {
  int64_t stride = round_up(head_dim, 8) + 4;
  return (tiles * block * stride + block * (block + 4)) * 4;
}

int64_t row_count(const AttentionProblem& p) { return p.batch * p.heads * p.time; }

constexpr int kForwardTiles = 2, kBackwardTiles = 4;

std::string constants(const AttentionProblem& p, int block) {
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\nnamespace tokamak {{\nusing Element = {};\n"
             "constexpr int kHeadDim = {}, kBlock = {};\nconstexpr bool kCausal = {}, kDropout = {}, kDocuments = "
             "{};\nconstexpr int kRanks = {};\n}}\n",
             device_type(p.dtype), p.head_dim, block, p.causal, p.dropout > 0, p.documents, p.ranks) +
         matrix_in_whole(p.place);
}

class BlockedKernel : public Kernel {
 public:
  BlockedKernel(Context& context, const AttentionProblem& problem, int block, int tiles)
      : context_(context), problem_(problem), block_(block),
        shared_bytes_(int(shared_bytes(problem.head_dim, block, tiles))) {}

 protected:
  // The optional operands are behind the first `tensors`.
  AttentionArguments arguments(std::span<const void* const> in, size_t tensors) const {
    const AttentionProblem& p = problem_;
    const void *rng = p.dropout > 0 ? in[tensors] : nullptr, *documents = p.documents ? in.back() : nullptr;
    return {int32_t(p.time),
            int32_t(p.heads),
            float(p.scale),
            float(dropout_factor(p.dropout)),
            dropout_threshold(p.dropout),
            uint64_t(p.random_stream),
            rng,
            documents,
            p.ranks > 1 ? in[2] : nullptr};
  }
  // Keys and values, or their gradients, from the first sample's first key on: kv, or qkv behind its queries.
  template <typename T>
  T* keys(std::span<T* const> tensors) const {
    if (problem_.ranks > 1) return tensors[1];
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return static_cast<Byte*>(tensors[0]) + problem_.width() * dtype_bytes(problem_.dtype);
  }
  // A block of 16 x 16 threads per tile of so many rows.
  LaunchShape per_tile(int64_t rows) const {
    dim3 grid(unsigned(ceil_div(rows, block_)), unsigned(problem_.heads), unsigned(problem_.batch));
    return {grid, dim3(16, 16), shared_bytes_};
  }
  std::shared_ptr<DeviceFunction> compile(const char* name, const std::string& source) const {
    return context_.compiler->add(name, source);
  }
  const AttentionProblem& problem() const { return problem_; }
  cudaStream_t queue() const { return context_.queue(); }

 private:
  Context& context_;
  AttentionProblem problem_;
  int block_;
  int shared_bytes_;
};

class ForwardKernel : public BlockedKernel {
 public:
  ForwardKernel(Context& context, const AttentionProblem& problem, int block)
      : BlockedKernel(context, problem, block, kForwardTiles),
        function_(compile("attention", attention_source(problem, block))) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    const AttentionProblem& p = problem();
    function_->launch(queue(), per_tile(p.time), in[0], keys(in), out[0], out[1], arguments(in, p.first()));
  }

 private:
  std::shared_ptr<DeviceFunction> function_;
};

class BackwardKernel : public BlockedKernel {
 public:
  BackwardKernel(Context& context, const AttentionProblem& problem, int block)
      : BlockedKernel(context, problem, block, kBackwardTiles) {
    std::string source = attention_grad_source(problem, block);
    delta_ = compile("attention_delta", source);
    grad_q_ = compile("attention_grad_q", source);
    grad_kv_ = compile("attention_grad_kv", source);
  }

  int64_t workspace_bytes() const override { return blocked_grad_scratch_bytes(problem()); }
  void use_workspace(void* workspace) override { workspace_ = workspace; }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    const AttentionProblem& p = problem();
    size_t first = p.first();
    const void *qkv = in[0], *kv = keys(in), *delta = workspace_;
    const void *y = in[first], *lse = in[first + 1], *dy = in[first + 2];
    AttentionArguments a = arguments(in, first + 3);
    delta_->launch(queue(), {dim3(unsigned(ceil_div(rows(), 8))), dim3(256)}, y, dy, workspace_, rows(), a);
    grad_q_->launch(queue(), per_tile(p.time), qkv, kv, lse, dy, delta, out[0], a);
    grad_kv_->launch(queue(), per_tile(p.keys()), qkv, kv, lse, dy, delta, keys(out), a);
  }

 private:
  int64_t rows() const { return row_count(problem()); }

  std::shared_ptr<DeviceFunction> delta_, grad_q_, grad_kv_;
  void* workspace_ = nullptr;
};

}  // namespace

int attention_block(int64_t head_dim, int64_t limit) {
  for (int block : {64, 32, 16})
    if (shared_bytes(head_dim, block, kBackwardTiles) <= limit) return block;
  return 0;
}

int64_t blocked_grad_scratch_bytes(const AttentionProblem& problem) {
  return row_count(problem) * int64_t(sizeof(float));
}

std::string attention_source(const AttentionProblem& problem, int block) {
  return constants(problem, block) + std::string(embedded_source("backend/cuda/kernels/attention.cu"));
}
std::string attention_grad_source(const AttentionProblem& problem, int block) {
  return constants(problem, block) + std::string(embedded_source("backend/cuda/kernels/attention_grad.cu"));
}

KernelPtr make_blocked_attention(Context& context, const AttentionProblem& problem) {
  int block = attention_block(problem.head_dim, context.info.shared_bytes);
  return block ? std::make_unique<ForwardKernel>(context, problem, block) : nullptr;
}
KernelPtr make_blocked_attention_grad(Context& context, const AttentionProblem& problem) {
  int block = attention_block(problem.head_dim, context.info.shared_bytes);
  return block ? std::make_unique<BackwardKernel>(context, problem, block) : nullptr;
}

}  // namespace tokamak::cuda
