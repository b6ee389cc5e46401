// embedding and its gradient. The gradient is split along columns: each element is summed by one thread, in order of
// the ids, so that the result does not depend on the number of threads.
#include "backend/cpu/kernels.h"

#include "backend/cpu/convert.h"
#include "backend/cpu/reduce.h"
#include "base/error.h"
#include "base/parallel.h"

#include <cstring>

namespace tokamak::cpu {
namespace {

using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;

void check_ids(const int32_t* ids, int64_t n, int64_t rows) {
  for (int64_t i = 0; i < n; ++i)
    if (ids[i] < 0 || ids[i] >= rows)
      user_error(
          "[embedding] expected token ids below the vocabulary's {}, got {} at position {}; prepare the data with "
          "the model's tokenizer or raise --model.vocab",
          rows, ids[i], i);
}

class EmbeddingKernel : public Kernel {
 public:
  EmbeddingKernel(const Graph& graph, const Node& node)
      : rows_(graph.shape(node.inputs[0])[0]), count_(num_elements(graph.shape(node.inputs[1]))),
        row_bytes_(graph.shape(node.inputs[0])[1] * dtype_bytes(graph.dtype(node.inputs[0]))) {}

  void run(Inputs in, Outputs out) override {
    const auto* table = static_cast<const char*>(in[0]);
    const auto* ids = static_cast<const int32_t*>(in[1]);
    auto* y = static_cast<char*>(out[0]);
    check_ids(ids, count_, rows_);
    parallel_for(count_, 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(y + i * row_bytes_, table + ids[i] * row_bytes_, size_t(row_bytes_));
    });
  }

 private:
  int64_t rows_, count_, row_bytes_;
};

class EmbeddingGradKernel : public Kernel {
 public:
  EmbeddingGradKernel(const Graph& graph, const Node& node)
      : rows_(graph.shape(node.outputs[0])[0]), cols_(graph.shape(node.outputs[0])[1]),
        count_(num_elements(graph.shape(node.inputs[1]))) {
    TOKAMAK_CHECK(graph.dtype(node.inputs[0]) == DType::kF32, "embedding_grad runs in f32");
  }

  void run(Inputs in, Outputs out) override {
    const auto* dy = static_cast<const float*>(in[0]);
    const auto* ids = static_cast<const int32_t*>(in[1]);
    const void* base = in.size() == 3 ? in[2] : nullptr;
    auto* table = static_cast<float*>(out[0]);
    check_ids(ids, count_, rows_);
    parallel_for(rows_, 64,
                 [&](int64_t begin, int64_t end, int) { start(base, table, begin * cols_, (end - begin) * cols_); });
    parallel_for(cols_, 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = 0; i < count_; ++i) add_to(dy + i * cols_ + begin, end - begin, table + ids[i] * cols_ + begin);
    });
  }

 private:
  static void start(const void* base, float* table, int64_t at, int64_t n) {
    if (!base)
      std::memset(table + at, 0, size_t(n) * 4);
    else if (base != table)
      std::memcpy(table + at, static_cast<const float*>(base) + at, size_t(n) * 4);
  }

  int64_t rows_, cols_, count_;
};

}  // namespace

std::unique_ptr<Kernel> make_embedding_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<EmbeddingKernel>(graph, node);
}
std::unique_ptr<Kernel> make_embedding_grad_kernel(const Graph& graph, const Node& node) {
  if (graph.dtype(node.inputs[0]) != DType::kF32) return make_reference_kernel(graph, node);
  return std::make_unique<EmbeddingGradKernel>(graph, node);
}

}  // namespace tokamak::cpu
