#include "backend/cuda/embedding_kernels.h"

#include "backend/cuda/device_types.h"
#include "backend/cuda/kernels.h"
#include "base/divide.h"
#include "base/error.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tokamak::cuda {
namespace {

constexpr int kThreads = 256, kUnitsPerThread = 4;  // as kernels/embedding.cu
constexpr int kSortBlock = 1024, kDigitBits = 8;    // as kernels/radix_sort.cu
constexpr int kWindow = 64, kSegments = 8;          // as kernels/embedding_grad.cu

// Two bytes of a NaN at a time.
std::string nan_unit(DType dtype, int64_t bytes) {
  uint32_t word = dtype == DType::kF32 ? 0x7fc00000u : dtype == DType::kBF16 ? 0x7fc07fc0u : 0x7e007e00u;
  switch (bytes) {
    case 16: return fmt::format("uint4{{{0}u, {0}u, {0}u, {0}u}}", word);
    case 8: return fmt::format("uint2{{{0}u, {0}u}}", word);
    case 4: return fmt::format("{}u", word);
    default: return fmt::format("uint16_t({}u)", word & 0xffff);
  }
}

int64_t unit_bytes(const Graph& graph, const Node& node) {
  const ValueType& table = graph.type(node.inputs[0]);
  return std::gcd(int64_t(16), table.shape[1] * dtype_bytes(table.dtype));
}

// Of embedding_grad's scratch memory: pairs of (key, position) twice, counts of digits, partial sums of rows.
struct GradLayout {
  int64_t second_at = 0, counts_at = 0, partial_at = 0;
  int64_t bytes = 0;
};

GradLayout lay_out(const EmbeddingSize& size) {
  constexpr int64_t kPairBytes = 8;  // Keyed
  GradLayout layout;
  auto take = [&](int64_t bytes) { return std::exchange(layout.bytes, layout.bytes + (bytes + 63) / 64 * 64); };
  take(size.ids * kPairBytes);
  layout.second_at = take(size.ids * kPairBytes);
  layout.counts_at = take((1 << kDigitBits) * ceil_div(size.ids, kSortBlock) * 4);
  layout.partial_at = take(ceil_div(size.ids, kWindow) * 2 * size.cols * 4);
  return layout;
}

class EmbeddingKernel : public Kernel {
 public:
  EmbeddingKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), function_(context.compiler->add("embedding", embedding_source(graph, node))) {
    int64_t units = num_bytes(graph.type(node.outputs[0])) / unit_bytes(graph, node);
    blocks_ = ceil_div(units, kThreads * kUnitsPerThread);
  }
  void run(std::span<const void* const> in, std::span<void* const> out) override {
    function_->launch(context_.queue(), {dim3(unsigned(blocks_)), dim3(kThreads), 0}, in[0], in[1], out[0]);
  }

 private:
  Context& context_;
  std::shared_ptr<DeviceFunction> function_;
  int64_t blocks_ = 0;
};

// Sorts positions by id, stably, then adds up the rows of each id in that order: the same bits every time.
class EmbeddingGradKernel : public Kernel {
 public:
  EmbeddingGradKernel(Context& context, const Graph& graph, const Node& node)
      : context_(context), size_(embedding_size(graph, node)), split_(split_columns(graph, node)),
        layout_(lay_out(size_)), bytes_(num_bytes(graph.type(node.outputs[0]))) {
    TOKAMAK_CHECK(size_.ids < INT32_MAX - kSortBlock, "{} ids at a time", size_.ids);
    std::string sort = radix_sort_source(size_.ids, size_.rows), sum = embedding_grad_source(graph, node);
    count_digits_ = context.compiler->add("count_digits", sort);
    scan_counts_ = context.compiler->add("scan_counts", sort);
    place_by_digit_ = context.compiler->add("place_by_digit", sort);
    sum_rows_ = context.compiler->add("sum_rows", sum);
    combine_runs_ = context.compiler->add("combine_runs", sum);
  }

  int64_t workspace_bytes() const override { return layout_.bytes; }
  void use_workspace(void* at) override { workspace_ = static_cast<char*>(at); }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    if (in.size() < 3)
      TOKAMAK_CUDA(cudaMemsetAsync(out[0], 0, size_t(bytes_), context_.queue()));
    else if (in[2] != out[0])
      TOKAMAK_CUDA(cudaMemcpyAsync(out[0], in[2], size_t(bytes_), cudaMemcpyDeviceToDevice, context_.queue()));
    const void* sorted = sort(in[1]);
    void* partial = workspace_ + layout_.partial_at;
    unsigned windows = unsigned(ceil_div(size_.ids, kWindow));
    unsigned slabs = unsigned(ceil_div(size_.cols, int64_t(split_.threads) * split_.vector));
    sum_rows_->launch(context_.queue(), {dim3(windows, slabs), dim3(unsigned(split_.threads)), 0}, in[0], sorted,
                      out[0], partial);
    slabs = unsigned(ceil_div(size_.cols, int64_t(32) * split_.vector));
    combine_runs_->launch(context_.queue(), {dim3(windows, slabs), dim3(32, kSegments), 0}, sorted,
                          static_cast<const void*>(partial), out[0]);
  }

 private:
  // Where the sorted pairs of (key, position) are.
  const void* sort(const void* ids) {
    int bits = std::bit_width(uint64_t(size_.rows));  // keys are up to `rows`, which marks ids that are out of range
    void *from = workspace_, *to = workspace_ + layout_.second_at, *counts = workspace_ + layout_.counts_at;
    LaunchShape all{dim3(unsigned(ceil_div(size_.ids, kSortBlock))), dim3(kSortBlock), 0};
    for (int shift = 0; shift < bits; shift += kDigitBits) {
      int first = shift == 0;
      count_digits_->launch(context_.queue(), all, ids, from, counts, shift, first);
      scan_counts_->launch(context_.queue(), {dim3(1), dim3(kSortBlock), 0}, counts);
      place_by_digit_->launch(context_.queue(), all, ids, from, counts, to, shift, first);
      std::swap(from, to);
    }
    return from;
  }

  Context& context_;
  EmbeddingSize size_;
  ColumnSplit split_;
  GradLayout layout_;
  int64_t bytes_;
  std::shared_ptr<DeviceFunction> count_digits_, scan_counts_, place_by_digit_, sum_rows_, combine_runs_;
  char* workspace_ = nullptr;
};

}  // namespace

EmbeddingSize embedding_size(const Graph& graph, const Node& node) {
  bool grad = node.attrs.get_int("rows", 0) > 0;
  const Shape& table = graph.shape(grad ? node.outputs[0] : node.inputs[0]);
  return {num_elements(graph.shape(node.inputs[1])), table[0], table[1]};
}

std::string embedding_source(const Graph& graph, const Node& node) {
  EmbeddingSize size = embedding_size(graph, node);
  DType dtype = graph.dtype(node.inputs[0]);
  int64_t bytes = unit_bytes(graph, node), row = size.cols * dtype_bytes(dtype) / bytes;
  const char* unit = bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : bytes == 4 ? "uint32_t" : "uint16_t";
  return fmt::format(
      "#include \"backend/cuda/kernels/std.cuh\"\nusing Unit = {};\nusing Index = {};\n"
      "constexpr Index kUnits = {}, kRowUnits = {};\nconstexpr int32_t kRows = {};\n"
      "__device__ inline Unit nan_unit() {{ return {}; }}\n#include \"backend/cuda/kernels/embedding.cu\"\n",
      unit, size.ids * row < INT32_MAX / 2 ? "uint32_t" : "uint64_t", size.ids * row, row, size.rows,
      nan_unit(dtype, bytes));
}

std::string radix_sort_source(int64_t count, int64_t rows) {
  return fmt::format(
      "constexpr int kCount = {}, kInvalid = {}, kBlocks = {};\n"
      "#include \"backend/cuda/kernels/radix_sort.cu\"\n",
      count, rows, ceil_div(count, kSortBlock));
}

ColumnSplit split_columns(const Graph& graph, const Node& node) {
  int64_t cols = graph.shape(node.outputs[0])[1];
  ColumnSplit split;
  split.vector = int(std::gcd(16 / dtype_bytes(graph.dtype(node.inputs[0])), cols));
  int64_t warps = ceil_div(cols / split.vector, 32);
  split.threads = 32 * int(ceil_div(warps, ceil_div(warps, 8)));  // at most 256, the blocks of a row alike
  return split;
}

std::string embedding_grad_source(const Graph& graph, const Node& node) {
  EmbeddingSize size = embedding_size(graph, node);
  ColumnSplit split = split_columns(graph, node);
  return fmt::format(
      "#include \"backend/cuda/kernels/vectors.cuh\"\nusing In = {};\nusing Out = {};\n"
      "constexpr int kCount = {}, kInvalid = {}, kCols = {}, kVector = {}, kThreads = {};\nconstexpr bool kAdd = {};\n"
      "#include \"backend/cuda/kernels/embedding_grad.cu\"\n",
      device_type(graph.dtype(node.inputs[0])), device_type(graph.dtype(node.outputs[0])), size.ids, size.rows,
      size.cols, split.vector, split.threads, node.inputs.size() == 3);
}

KernelPtr make_embedding_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<EmbeddingKernel>(context, graph, node);
}
KernelPtr make_embedding_grad_kernel(Context& context, const Graph& graph, const Node& node) {
  return std::make_unique<EmbeddingGradKernel>(context, graph, node);
}

int64_t embedding_grad_scratch(const DeviceInfo&, const Graph& graph, const Node& node) {
  return lay_out(embedding_size(graph, node)).bytes;
}

}  // namespace tokamak::cuda
