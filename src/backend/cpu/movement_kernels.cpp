// transpose, slice, pad, concat: copies of runs of bytes.
#include "backend/cpu/kernels.h"
#include "base/error.h"
#include "base/parallel.h"

#include <algorithm>
#include <cstring>

namespace tokamak::cpu {
namespace {

using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;

// A tensor as (outer, row bytes) around one of its dims: one row holds all indices of dim and what is inside it.
struct Rows {
  int64_t outer = 1, index_bytes = 0, row_bytes = 0;
};

Rows rows_around(const ValueType& type, size_t dim) {
  Rows rows;
  rows.index_bytes = dtype_bytes(type.dtype);
  for (size_t d = 0; d < dim; ++d) rows.outer *= type.shape[d];
  for (size_t d = dim + 1; d < type.shape.size(); ++d) rows.index_bytes *= type.shape[d];
  rows.row_bytes = rows.index_bytes * type.shape[dim];
  return rows;
}

// Copies `bytes` of every row.
void copy_rows(int64_t outer, const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t bytes) {
  parallel_for(outer, std::max<int64_t>(1, 65536 / std::max<int64_t>(bytes, 1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, size_t(bytes));
  });
}

class SliceKernel : public Kernel {
 public:
  SliceKernel(const Graph& graph, const Node& node) {
    auto dim = size_t(node.attrs.get_int("dim"));
    from_ = rows_around(graph.type(node.inputs[0]), dim);
    to_ = rows_around(graph.type(node.outputs[0]), dim);
    begin_ = node.attrs.get_int("begin") * from_.index_bytes;
  }
  void run(Inputs in, Outputs out) override {
    copy_rows(from_.outer, static_cast<const char*>(in[0]) + begin_, from_.row_bytes, static_cast<char*>(out[0]),
              to_.row_bytes, to_.row_bytes);
  }

 private:
  Rows from_, to_;
  int64_t begin_ = 0;
};

class PadKernel : public Kernel {
 public:
  PadKernel(const Graph& graph, const Node& node) {
    auto dim = size_t(node.attrs.get_int("dim"));
    from_ = rows_around(graph.type(node.inputs[0]), dim);
    to_ = rows_around(graph.type(node.outputs[0]), dim);
    before_ = node.attrs.get_int("before") * to_.index_bytes;
  }
  void run(Inputs in, Outputs out) override {
    std::memset(out[0], 0, size_t(to_.outer * to_.row_bytes));
    copy_rows(from_.outer, static_cast<const char*>(in[0]), from_.row_bytes, static_cast<char*>(out[0]) + before_,
              to_.row_bytes, from_.row_bytes);
  }

 private:
  Rows from_, to_;
  int64_t before_ = 0;
};

class ConcatKernel : public Kernel {
 public:
  ConcatKernel(const Graph& graph, const Node& node) {
    auto dim = size_t(node.attrs.get_int("dim"));
    for (ValueId input : node.inputs) from_.push_back(rows_around(graph.type(input), dim));
    to_ = rows_around(graph.type(node.outputs[0]), dim);
  }
  void run(Inputs in, Outputs out) override {
    char* to = static_cast<char*>(out[0]);
    for (size_t i = 0; i < from_.size(); ++i) {
      copy_rows(to_.outer, static_cast<const char*>(in[i]), from_[i].row_bytes, to, to_.row_bytes, from_[i].row_bytes);
      to += from_[i].row_bytes;
    }
  }

 private:
  std::vector<Rows> from_;
  Rows to_;
};

template <typename T>
class TransposeKernel : public Kernel {
 public:
  TransposeKernel(const Graph& graph, const Node& node) : shape_(graph.shape(node.outputs[0])) {
    const Shape& from = graph.shape(node.inputs[0]);
    std::vector<int64_t> strides(from.size(), 1);
    for (size_t d = from.size(); d-- > 1;) strides[d - 1] = strides[d] * from[d];
    for (int64_t p : node.attrs.get_ints("perm")) strides_.push_back(strides[size_t(p)]);
    inner_ = shape_.empty() ? 1 : shape_.back();
  }

  // Row by row of the output; a row is one run of the input when the last dim stays last.
  void run(Inputs in, Outputs out) override {
    const T* from = static_cast<const T*>(in[0]);
    T* to = static_cast<T*>(out[0]);
    int64_t rows = num_elements(shape_) / inner_, stride = strides_.empty() ? 1 : strides_.back();
    parallel_for(rows, std::max<int64_t>(1, 4096 / inner_), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) copy_row(from + offset(r), stride, to + r * inner_);
    });
  }

 private:
  int64_t offset(int64_t row) const {
    int64_t at = 0;
    for (size_t d = shape_.size(); d-- > 0;) {
      if (d + 1 == shape_.size()) continue;
      at += row % shape_[d] * strides_[d];
      row /= shape_[d];
    }
    return at;
  }

  void copy_row(const T* from, int64_t stride, T* to) const {
    if (stride == 1) {
      std::memcpy(to, from, size_t(inner_) * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < inner_; ++i) to[i] = from[i * stride];
  }

  Shape shape_;
  std::vector<int64_t> strides_;
  int64_t inner_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_transpose_kernel(const Graph& graph, const Node& node) {
  switch (dtype_bytes(graph.dtype(node.inputs[0]))) {
    case 1: return std::make_unique<TransposeKernel<uint8_t>>(graph, node);
    case 2: return std::make_unique<TransposeKernel<uint16_t>>(graph, node);
    default: return std::make_unique<TransposeKernel<uint32_t>>(graph, node);
  }
}
std::unique_ptr<Kernel> make_slice_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<SliceKernel>(graph, node);
}
std::unique_ptr<Kernel> make_pad_kernel(const Graph& graph, const Node& node) {
  TOKAMAK_CHECK(!node.attrs.find("parts"), "pad of several parts on one rank");
  return std::make_unique<PadKernel>(graph, node);
}
std::unique_ptr<Kernel> make_concat_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<ConcatKernel>(graph, node);
}

}  // namespace tokamak::cpu
