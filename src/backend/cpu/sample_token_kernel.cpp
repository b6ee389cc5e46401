// sample_token: a row's next token by ops/sampler.h, the rows side by side.
#include "backend/cpu/kernels.h"
#include "base/parallel.h"
#include "graph/op_def.h"
#include "ops/sampler.h"

#include <algorithm>

namespace tokamak::cpu {
namespace {

class SampleTokenKernel : public Kernel {
 public:
  SampleTokenKernel(const Graph& graph, const Node& node)
      : rows_(graph.shape(node.inputs[0])[0]), columns_(graph.shape(node.inputs[0])[1]),
        vocab_(size_t(node.attrs.get_int("vocab"))), places_(int32_t(node.attrs.get_int("places"))) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    const auto *logits = static_cast<const float*>(in[0]), *settings = static_cast<const float*>(in[4]);
    const auto *position = static_cast<const int32_t*>(in[1]), *drawn = static_cast<const int32_t*>(in[2]),
               *seeds = static_cast<const int32_t*>(in[3]);
    auto *token = static_cast<int32_t*>(out[0]), *next = static_cast<int32_t*>(out[1]),
         *more_drawn = static_cast<int32_t*>(out[2]);
    SamplingOptions options{double(settings[0]), int64_t(settings[1]), double(settings[2])};
    parallel_for(rows_, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t b = begin; b < end; ++b) {
        float uniform = sampling_uniform(sampling_seed(seeds[2 * b], seeds[2 * b + 1]), drawn[b]);
        token[b] = sample({logits + b * columns_, vocab_}, options, uniform);
        next[b] = std::min(position[b] + 1, places_ - 1);
        more_drawn[b] = drawn[b] + 1;
      }
    });
  }

 private:
  int64_t rows_, columns_;
  size_t vocab_;
  int32_t places_;
};

}  // namespace

bool has_sample_token(const Graph& graph, const Node& node) { return graph.dtype(node.inputs[0]) == DType::kF32; }

std::unique_ptr<Kernel> make_sample_token_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<SampleTokenKernel>(graph, node);
}

}  // namespace tokamak::cpu
