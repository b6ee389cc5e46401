// multi_add: chunks of all tensors together, so that small tensors cost nothing extra.
#include "backend/cpu/kernels.h"
#include "base/parallel.h"

#include <algorithm>

namespace tokamak::cpu {
namespace {

class MultiAddKernel : public Kernel {
 public:
  MultiAddKernel(const Graph& graph, const Node& node) {
    for (size_t t = 0; t < node.outputs.size(); ++t) {
      int64_t n = num_elements(graph.shape(node.outputs[t]));
      for (int64_t at = 0; at < n; at += kChunk) chunks_.push_back({t, at, std::min(kChunk, n - at)});
    }
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    parallel_for(int64_t(chunks_.size()), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) add(chunks_[size_t(i)], in, out);
    });
  }

 private:
  static constexpr int64_t kChunk = 1 << 16;
  struct Chunk {
    size_t tensor;
    int64_t at, n;
  };

  // An element is written when all its terms have been read, as the sum may take the place of one.
  static void add(const Chunk& c, std::span<const void* const> in, std::span<void* const> out) {
    auto term = [&](size_t i) { return static_cast<const float*>(in[i]) + c.at; };
    float* sum = static_cast<float*>(out[c.tensor]) + c.at;
    size_t tensors = out.size(), terms = in.size() / tensors;
    const float* x = term(c.tensor);
    const float* y = term(c.tensor + tensors);
    if (terms == 2) {
      for (int64_t i = 0; i < c.n; ++i) sum[i] = x[i] + y[i];
      return;
    }
    for (int64_t i = 0; i < c.n; ++i) {
      float total = x[i] + y[i];
      for (size_t t = 2; t < terms; ++t) total += term(c.tensor + t * tensors)[i];
      sum[i] = total;
    }
  }

  std::vector<Chunk> chunks_;
};

}  // namespace

std::unique_ptr<Kernel> make_multi_add_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<MultiAddKernel>(graph, node);
}

}  // namespace tokamak::cpu
