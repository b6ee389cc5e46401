// embedding and its gradient. The gradient is split along columns: each element is summed by one thread, in f32 and in
// order of the ids, so that the result does not depend on the number of threads, and is rounded once.
#include "backend/cpu/kernels.h"

#include "backend/cpu/convert.h"
#include "backend/cpu/reduce.h"
#include "base/error.h"
#include "base/parallel.h"

#include <algorithm>
#include <cstring>
#include <numeric>

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
        count_(num_elements(graph.shape(node.inputs[1]))), dy_type_(graph.dtype(node.inputs[0])),
        table_type_(graph.dtype(node.outputs[0])), first_(size_t(rows_) + 1), positions_(size_t(count_)) {}

  void run(Inputs in, Outputs out) override {
    const auto* ids = static_cast<const int32_t*>(in[1]);
    const void* base = in.size() == 3 ? in[2] : nullptr;
    check_ids(ids, count_, rows_);
    sort_by_row(ids);
    parallel_for(rows_, 64,
                 [&](int64_t begin, int64_t end, int) { start(base, out[0], begin * cols_, (end - begin) * cols_); });
    parallel_for(cols_, 16, [&](int64_t begin, int64_t end, int) { add_rows(in[0], out[0], begin, end - begin); });
  }

 private:
  // positions_[first_[r]] ... are those of id r, in order.
  void sort_by_row(const int32_t* ids) {
    std::fill(first_.begin(), first_.end(), 0);
    for (int64_t i = 0; i < count_; ++i) ++first_[size_t(ids[i]) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<int64_t> next(first_.begin(), first_.end() - 1);
    for (int64_t i = 0; i < count_; ++i) positions_[size_t(next[size_t(ids[i])]++)] = i;
  }

  void start(const void* base, void* table, int64_t at, int64_t n) const {
    int64_t bytes = dtype_bytes(table_type_);
    char* to = static_cast<char*>(table) + at * bytes;
    if (!base)
      std::memset(to, 0, size_t(n * bytes));
    else if (base != table)
      std::memcpy(to, static_cast<const char*>(base) + at * bytes, size_t(n * bytes));
  }

  // Columns [begin, begin + n) of all rows that have an id.
  void add_rows(const void* dy, void* table, int64_t begin, int64_t n) const {
    std::vector<float> sums(static_cast<size_t>(n)), row(static_cast<size_t>(n));
    for (int64_t r = 0; r < rows_; ++r) {
      if (first_[size_t(r)] == first_[size_t(r) + 1]) continue;
      load(table_type_, table, r * cols_ + begin, n, sums.data());
      for (int64_t k = first_[size_t(r)]; k < first_[size_t(r) + 1]; ++k) {
        load(dy_type_, dy, positions_[size_t(k)] * cols_ + begin, n, row.data());
        add_to(row.data(), n, sums.data());
      }
      store(table_type_, sums.data(), n, table, r * cols_ + begin);
    }
  }

  int64_t rows_, cols_, count_;
  DType dy_type_, table_type_;
  std::vector<int64_t> first_, positions_;
};

}  // namespace

std::unique_ptr<Kernel> make_embedding_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<EmbeddingKernel>(graph, node);
}
std::unique_ptr<Kernel> make_embedding_grad_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<EmbeddingGradKernel>(graph, node);
}

}  // namespace tokamak::cpu
