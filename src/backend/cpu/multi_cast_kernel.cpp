// multi_cast: chunks of all tensors together, so that small tensors cost nothing extra.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "base/parallel.h"
#include "ops/multi_cast.h"

#include <algorithm>
#include <array>

namespace tokamak::cpu {
namespace {

class MultiCastKernel : public Kernel {
 public:
  MultiCastKernel(const Graph& graph, const Node& node) : to_(graph.dtype(node.outputs[0])) {
    const std::vector<CastPlace> places = cast_places(graph, node);
    for (size_t t = 0; t < node.inputs.size(); ++t) {
      int64_t n = num_elements(graph.shape(node.inputs[t]));
      for (int64_t at = 0; at < n; at += kChunk)
        chunks_.push_back({t, graph.dtype(node.inputs[t]), at, std::min(kChunk, n - at), places[t]});
    }
  }

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    parallel_for(int64_t(chunks_.size()), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const Chunk& c = chunks_[size_t(i)];
        convert(c, in[c.tensor], out[c.to.output]);
      }
    });
  }

 private:
  static constexpr int64_t kChunk = 1 << 16;
  struct Chunk {
    size_t tensor;
    DType from;
    int64_t at, n;
    CastPlace to;  // of the tensor's first element
  };

  // Through a block of floats that stays in the cache.
  void convert(const Chunk& c, const void* from, void* to) const {
    std::array<float, 1024> block;
    for (int64_t at = 0; at < c.n; at += int64_t(block.size())) {
      int64_t n = std::min(int64_t(block.size()), c.n - at);
      load(c.from, from, c.at + at, n, block.data());
      store(to_, block.data(), n, to, c.to.begin + c.at + at);
    }
  }

  DType to_;
  std::vector<Chunk> chunks_;
};

}  // namespace

std::unique_ptr<Kernel> make_multi_cast_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<MultiCastKernel>(graph, node);
}

}  // namespace tokamak::cpu
