// The optimizer's kernels over many tensors at once: the sum of squares for the global norm, and AdamW. The work is cut
// into chunks of all tensors together, so that small tensors cost nothing extra.
#include "backend/cpu/convert.h"
#include "backend/cpu/group_kernel.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/reduce.h"
#include "base/error.h"
#include "base/parallel.h"
#include "graph/builder.h"
#include "ops/adamw.h"
#include "ops/group.h"
#include "passes/group_of_node.h"

#include <array>

namespace tokamak::cpu {
namespace {

using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;

class SumSquaresKernel : public Kernel {
 public:
  // The chunks of a sum follow each other.
  SumSquaresKernel(const Graph& graph, const Node& node) : sums_(num_elements(graph.shape(node.outputs[0]))) {
    int64_t pieces = node.attrs.get_int("pieces", 1);
    for (size_t t = 0; t < node.inputs.size(); ++t) {
      int64_t n = num_elements(graph.shape(node.inputs[t])) / pieces;
      DType dtype = graph.dtype(node.inputs[t]);
      for (int64_t piece = 0; piece < pieces; ++piece)
        for (int64_t at = 0; at < n; at += kChunk)
          chunks_.push_back({t, dtype, piece * n + at, std::min(kChunk, n - at)});
    }
    partial_.resize(chunks_.size());
  }

  // Partial sums per fixed chunk, added in order: the same bits for any number of threads.
  void run(Inputs in, Outputs out) override {
    parallel_for(int64_t(chunks_.size()), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const Chunk& c = chunks_[size_t(i)];
        partial_[size_t(i)] = sum_of_chunk(in[c.tensor], c);
      }
    });
    int64_t of_sum = int64_t(partial_.size()) / sums_;
    for (int64_t sum = 0; sum < sums_; ++sum) {
      double total = 0;
      for (int64_t i = 0; i < of_sum; ++i) total += partial_[size_t(sum * of_sum + i)];
      static_cast<float*>(out[0])[sum] = float(total);
    }
  }

 private:
  static constexpr int64_t kChunk = 1 << 16;
  struct Chunk {
    size_t tensor;
    DType dtype;
    int64_t at, n;
  };

  static double sum_of_chunk(const void* data, const Chunk& c) {
    if (c.dtype == DType::kF32) return sum_of_squares(static_cast<const float*>(data) + c.at, c.n);
    std::array<float, 1024> block;
    double total = 0;
    for (int64_t at = 0; at < c.n; at += int64_t(block.size())) {
      int64_t n = std::min(int64_t(block.size()), c.n - at);
      load(c.dtype, data, c.at + at, n, block.data());
      total += sum_of_squares(block.data(), n);
    }
    return total;
  }

  int64_t sums_;  // one of all tensors, or of each tensor those of its pieces
  std::vector<Chunk> chunks_;
  std::vector<double> partial_;
};

// The tile program of one tensor's update: what op::adamw decomposes into.
TileProgram adamw_program(const ValueType& grad, DType state, const Attrs& attrs) {
  Graph graph("adamw");
  GraphBuilder g(graph);
  ValueIds in;
  for (DType dtype : {DType::kF32, grad.dtype, state, state})
    in.push_back(g.input(fmt::format("a{}", in.size()), {dtype, grad.shape}));
  for (int i = 4; i < 7; ++i) in.push_back(g.input(fmt::format("a{}", i), {DType::kF32, {}}));
  g.add(op::adamw, in, attrs);
  std::optional<GroupBody> group = group_of_node(graph, graph.nodes()[0], {true, true, true});
  TOKAMAK_CHECK(group && group->kind == &op::flat, "adamw is no flat group");
  return compile_tiles(*group);
}

class MultiAdamwKernel : public Kernel {
 public:
  MultiAdamwKernel(const Graph& graph, const Node& node) {
    for (size_t t = 0; t < node.attrs.get_ints("decayed").size(); ++t) {
      programs_.push_back(
          adamw_program(graph.type(node.inputs[4 + 4 * t]), graph.dtype(node.inputs[5 + 4 * t]), adamw_attrs(node, t)));
      first_tile_.push_back(total_tiles_);
      total_tiles_ += num_tiles(programs_.back());
    }
  }

  void run(Inputs in, Outputs out) override {
    parallel_for(total_tiles_, 1, [&](int64_t begin, int64_t end, int) {
      for (size_t t = 0; t < programs_.size(); ++t) {
        int64_t first = std::max(begin, first_tile_[t]) - first_tile_[t];
        int64_t last = std::min(end - first_tile_[t], num_tiles(programs_[t]));
        if (first >= last) continue;
        const void* const* tensor = &in[3 + 4 * t];
        std::array<const void*, 7> inputs{tensor[0], tensor[1], tensor[2], tensor[3], in[0], in[1], in[2]};
        run_tiles(programs_[t], inputs, out.subspan(3 * t, 3), first, last);
      }
    });
  }

 private:
  std::vector<TileProgram> programs_;
  std::vector<int64_t> first_tile_;
  int64_t total_tiles_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_sum_squares_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<SumSquaresKernel>(graph, node);
}
std::unique_ptr<Kernel> make_multi_adamw_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<MultiAdamwKernel>(graph, node);
}

}  // namespace tokamak::cpu
