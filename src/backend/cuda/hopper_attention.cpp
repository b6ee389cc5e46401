#include "backend/cuda/hopper_attention.h"

#include "backend/cuda/place_source.h"
#include "backend/cuda/tensor_map.h"
#include "base/divide.h"
#include "base/dropout_random.h"

#include <fmt/core.h>

#include <algorithm>
#include <numbers>

namespace tokamak::cuda {
namespace {

constexpr int kPanel = 64, kWarpRows = 16;  // columns of a copy, rows of a warp

// As in kernels/attention_hopper.cuh.
struct Dropout {
  const void* rng;
  uint64_t stream;
  uint32_t threshold;
  float kept;
};

// As in kernels/attention_hopper.cu.
struct ForwardTiles {
  int queries, keys, stages, groups;  // rows; of keys and values; of warps that compute
  explicit ForwardTiles(const AttentionProblem& p) {
    bool wide = p.head_dim == 128;
    queries = wide ? 128 : 256, keys = wide ? 128 : 64, stages = wide ? 2 : 6, groups = wide ? 2 : 4;
  }
  /// Keys and values, two stages of q, the output, barriers.
  size_t shared_bytes(const AttentionProblem& p) const {
    return size_t((stages * 2 * keys + 2 * queries + queries) * p.head_dim * 2 + (4 * stages + 4) * 8);
  }
};
struct ForwardArguments {
  float* lse;
  const void* documents;
  int32_t batch, time, heads;
  int32_t shared;
  float scale;
  Dropout dropout;
  const void* rank_at;
  int32_t rank;
  void* out8;
  const void* factor;
};
// As Rows in kernels/attention_rows.cu.
struct RowArguments {
  float* rows;
  int32_t* summed;
  int32_t batch, time, heads;
  float share;
};

// As in kernels/attention_grad_hopper.cu.
constexpr int kTile = 128, kGradWarps = 8;
int grad_queries(const AttentionProblem& p) { return p.head_dim == 128 ? 64 : 128; }
int64_t panels(const AttentionProblem& p) { return p.head_dim / kPanel; }
struct GradArguments {
  float* rows;
  float* dq_sum;
  int32_t* summed;
  const void* documents;
  int32_t batch, time, heads;
  int32_t shared;
  float exponent, scale, dv_scale;
  Dropout dropout;
  float* dq_columns;
  float* dv_columns;
  const void* rank_at;
  int32_t rank;
  void* dqkv8;
  const void* factor;
};
// Two stages of q, dout, k, and dS, of v one with heads of 128; dQ as floats; two stages of two floats a row; barriers.
size_t grad_shared_bytes(const AttentionProblem& p) {
  int64_t queries = grad_queries(p), value_stages = p.head_dim == 128 ? 1 : 2;
  int64_t elements =
      2 * (2 * queries * p.head_dim + kTile * p.head_dim + kTile * queries) + value_stages * kTile * p.head_dim;
  return size_t(elements * 2 + queries * p.head_dim * 4 + 2 * 2 * queries * 4 + (10 + 2 * value_stages) * 8);
}

std::string constants(const AttentionProblem& p) {
  return fmt::format(
             "#include \"backend/cuda/kernels/storage.cuh\"\n#define TOKAMAK_ELEMENT \"{0}\"\nnamespace tokamak {{\n"
             "using Element = {0};\nconstexpr bool kCausal = {1}, kDocuments = {2}, kDropout = {3}, kSums = {4};\n"
             "constexpr bool kFloat8 = {5};\nconstexpr int kRanks = {6}, kHeadDim = {7};\n}}\n",
             dtype_name(p.dtype), p.causal, p.documents, p.dropout > 0, p.sums, p.float8, p.ranks, p.head_dim) +
         matrix_in_whole(p.place);
}

// (batch, time, columns) as boxes of `rows` by 64.
CUtensorMap rows_of_heads(const void* base, const AttentionProblem& p, int64_t columns, int rows) {
  return tensor_map(base, p.dtype, {columns, p.time, p.batch}, {kPanel, rows, 1});
}
// The same of what has keys and values: kv, of all ranks, or qkv.
template <typename T>
CUtensorMap rows_of_keys(std::span<T* const> tensors, const AttentionProblem& p, int rows) {
  return tensor_map(tensors[p.ranks > 1 ? 1 : 0], p.dtype, {p.key_width(), p.time, p.batch * p.ranks},
                    {kPanel, rows, 1});
}

constexpr int kSumThreads = 1024;  // as in kernels/attention_column_sums.cu

constexpr uint32_t kLargestNumber = 0x7bff;  // of 16 bits, as which kernels/attention_hopper.cuh compares dropout's

/// How blocks, of which as many run at a time as there are multiprocessors, have the heads: the first `shared` among
/// all of them, the others each for itself (Work in kernels/attention_hopper.cuh).
struct Division {
  int64_t blocks, shared;
};

// Heads of its own are better for a block, which then waits for nobody and needs less memory, unless that leaves more
// than a twentieth of the blocks idle.
Division divide(int multiprocessors, const AttentionProblem& p, int64_t tiles) {
  int64_t heads = p.batch * p.heads, turns = round_up(heads, multiprocessors);
  bool shares = 20 * (turns - heads) > turns;
  int64_t pieces = shares ? heads * tiles : heads;
  return {std::min<int64_t>(pieces, multiprocessors), shares ? heads % multiprocessors : 0};
}

Division divide_queries(int multiprocessors, const AttentionProblem& p) {
  return divide(multiprocessors, p, ceil_div(p.time, ForwardTiles(p).queries));
}
Division divide_keys(int multiprocessors, const AttentionProblem& p) {
  return divide(multiprocessors, p, p.keys() / kTile);
}

// Where the gradient's scratch memory has what: floats, but for the counters.
struct GradScratch {
  int64_t dq_terms, dv_terms;  // rows of partial sums of columns
  int64_t summed, dq_columns, dv_columns, dq_sum, end;

  GradScratch(const AttentionProblem& p, int multiprocessors) {
    int64_t tiles = p.time / kTile, rows = p.batch * p.heads * p.time;
    dq_terms = p.sums ? p.batch * (kGradWarps / panels(p)) * (p.documents ? tiles : 1) : 0;
    dv_terms = p.sums ? p.batch * tiles * (p.dropout > 0 ? kGradWarps : 1) : 0;
    Division division = divide_keys(multiprocessors, p);
    bool own = p.batch * p.heads > division.shared;
    summed = 2 * rows;
    dq_columns = summed + rows / grad_queries(p) * kGradWarps;
    dv_columns = dq_columns + dq_terms * p.width();
    dq_sum = dv_columns + dv_terms * p.width();
    end = dq_sum + (division.shared + (own ? division.blocks : 0)) * p.time * p.head_dim;
  }
};

bool sums_dout(const AttentionProblem& p) { return p.sums && p.dropout == 0; }

// The last input, or the one before the factor, where there are documents.
const void* documents(const AttentionProblem& p, std::span<const void* const> in) {
  return p.documents ? in[in.size() - (p.float8 ? 2 : 1)] : nullptr;
}

// Of what is written in eight bits: the last input.
const void* factor(const AttentionProblem& p, std::span<const void* const> in) {
  return p.float8 ? in.back() : nullptr;
}

// rng is input `place`, if there is dropout.
Dropout dropout(const AttentionProblem& p, std::span<const void* const> in, size_t place) {
  uint32_t threshold = dropout_threshold(p.dropout);
  return {p.dropout > 0 ? in[place] : nullptr, uint64_t(p.random_stream), threshold << 16 | threshold,
          float(dropout_factor(p.dropout))};
}

// Where its number is, of several.
const void* rank_of(const AttentionProblem& p, std::span<const void* const> in) {
  return p.ranks > 1 ? in[2] : nullptr;
}

class ForwardKernel : public Kernel {
 public:
  ForwardKernel(Context& context, const AttentionProblem& problem)
      : context_(context), problem_(problem),
        attention_(context.compiler->add("attention", hopper_attention_source(problem))) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    const AttentionProblem& p = problem_;
    Division division = divide_queries(context_.info.multiprocessors, p);
    ForwardArguments a{
        static_cast<float*>(out[1]), documents(p, in), int32_t(p.batch),          int32_t(p.time), int32_t(p.heads),
        int32_t(division.shared),    float(p.scale),   dropout(p, in, p.first()), rank_of(p, in),  0,
        p.float8 ? out[2] : nullptr, factor(p, in)};
    ForwardTiles tiles(p);
    LaunchShape shape{dim3(unsigned(division.blocks)), dim3(unsigned(128 + tiles.groups * 128)), tiles.shared_bytes(p)};
    attention_->launch(context_.queue(), shape, rows_of_heads(in[0], p, 3 * p.width(), tiles.queries),
                       rows_of_keys(in, p, tiles.keys), rows_of_heads(out[0], p, p.width(), kWarpRows), a);
  }

 private:
  Context& context_;
  AttentionProblem problem_;
  std::shared_ptr<DeviceFunction> attention_;
};

class GradKernel : public Kernel {
 public:
  GradKernel(Context& context, const AttentionProblem& problem) : context_(context), problem_(problem) {
    rows_ = context.compiler->add(sums_dout(problem) ? "attention_rows_and_sums" : "attention_rows",
                                  hopper_attention_rows_source(problem));
    grad_ = context.compiler->add("attention_grad", hopper_attention_grad_source(problem));
    if (problem.sums)
      add_sums_ = context.compiler->add("attention_column_sums", hopper_attention_column_sums_source(problem));
  }

  int64_t workspace_bytes() const override {
    return hopper_grad_scratch_bytes(problem_, context_.info.multiprocessors);
  }
  void use_workspace(void* workspace) override { workspace_ = static_cast<std::byte*>(workspace); }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    const AttentionProblem& p = problem_;
    float* rows = reinterpret_cast<float*>(workspace_);
    GradScratch scratch(p, context_.info.multiprocessors);
    float* dq_columns = rows + scratch.dq_columns;
    float* dv_columns = rows + scratch.dv_columns;
    auto* summed = reinterpret_cast<int32_t*>(rows + scratch.summed);
    Division division = divide_keys(context_.info.multiprocessors, p);
    size_t first = p.first();
    const void *y = in[first], *lse = in[first + 1], *dy = in[first + 2];
    Dropout d = dropout(p, in, first + 3);
    GradArguments a{rows,
                    rows + scratch.dq_sum,
                    summed,
                    documents(p, in),
                    int32_t(p.batch),
                    int32_t(p.time),
                    int32_t(p.heads),
                    int32_t(division.shared),
                    float(p.scale) * float(std::numbers::log2e),
                    float(p.scale) * d.kept,
                    d.kept,
                    d,
                    dq_columns,
                    dv_columns,
                    rank_of(p, in),
                    0,
                    p.float8 ? out[0] : nullptr,
                    factor(p, in)};
    RowArguments r{rows, summed, a.batch, a.time, a.heads, 1 / d.kept};
    int64_t row_count = p.batch * p.heads * p.time;
    std::span<const void* const> to = p.float8 ? in : std::span<const void* const>(out);  // not as boxes in eight bits
    if (sums_dout(p))
      rows_->launch(context_.queue(), {dim3(unsigned(row_count / kTile)), dim3(256)}, y, dy, lse, r, dv_columns);
    else
      rows_->launch(context_.queue(), {dim3(unsigned(row_count * p.head_dim / 2048)), dim3(256)}, y, dy, lse, r);
    grad_->launch(context_.queue(), {dim3(unsigned(division.blocks)), dim3(384), grad_shared_bytes(p)},
                  rows_of_heads(in[0], p, 3 * p.width(), grad_queries(p)), rows_of_keys(in, p, kTile),
                  rows_of_heads(dy, p, p.width(), grad_queries(p)),
                  rows_of_heads(to[0], p, p.ranks > 1 ? p.width() : 3 * p.width(), kWarpRows),
                  rows_of_keys(to, p, kWarpRows), a);
    if (p.sums)
      add_sums_->launch(context_.queue(), {dim3(unsigned(p.heads), 3), dim3(kSumThreads)}, dq_columns, dv_columns,
                        static_cast<float*>(out[1]), int32_t(scratch.dq_terms), int32_t(scratch.dv_terms));
  }

 private:
  Context& context_;
  AttentionProblem problem_;
  std::shared_ptr<DeviceFunction> rows_, grad_, add_sums_;
  std::byte* workspace_ = nullptr;
};

}  // namespace

bool hopper_supports(const AttentionProblem& p, Architecture a) {
  if (dropout_threshold(p.dropout) > kLargestNumber) return false;
  bool hopper = a.major == 9 && a.minor == 0, low = p.dtype == DType::kBF16 || p.dtype == DType::kF16;
  // No tile may cross the end of a rank's chunk: of queries that are far apart, the early ones would keep a tile of
  // keys while they wait for more of those that only the late ones see than shared memory has.
  bool whole_tiles = p.ranks > 1 ? p.time / 2 % ForwardTiles(p).queries == 0 : p.time % kTile == 0;
  return hopper && low && (p.head_dim == 64 || p.head_dim == 128) && whole_tiles && (p.causal || !p.documents);
}

bool hopper_fills(const AttentionProblem& p, int multiprocessors) {
  int64_t tiles = p.batch * p.heads * (p.time / kTile);
  return 2 * tiles >= multiprocessors;  // half of them do as much as cuDNN's kernels on all
}

int64_t hopper_grad_scratch_bytes(const AttentionProblem& p, int multiprocessors) {
  return GradScratch(p, multiprocessors).end * int64_t(sizeof(float));
}

std::string hopper_attention_source(const AttentionProblem& problem) {
  return constants(problem) + std::string(embedded_source("backend/cuda/kernels/attention_hopper.cu"));
}
std::string hopper_attention_rows_source(const AttentionProblem& problem) {
  return constants(problem) + std::string(embedded_source("backend/cuda/kernels/attention_rows.cu"));
}
std::string hopper_attention_grad_source(const AttentionProblem& problem) {
  return constants(problem) + std::string(embedded_source("backend/cuda/kernels/attention_grad_hopper.cu"));
}
std::string hopper_attention_column_sums_source(const AttentionProblem& problem) {
  return fmt::format("constexpr int kHeadDim = {};\n", problem.head_dim) +
         std::string(embedded_source("backend/cuda/kernels/attention_column_sums.cu"));
}

KernelPtr make_hopper_attention(Context& context, const AttentionProblem& problem) {
  return std::make_unique<ForwardKernel>(context, problem);
}
KernelPtr make_hopper_attention_grad(Context& context, const AttentionProblem& problem) {
  return std::make_unique<GradKernel>(context, problem);
}

}  // namespace tokamak::cuda
