// adamw8bit (ops/adamw8bit.cpp), block by block.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "base/parallel.h"
#include "ops/dynamic_map.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tokamak::cpu {
namespace {

constexpr int64_t kMostInBlock = 256;
using Floats = std::array<float, kMostInBlock>;

class Adamw8bitKernel : public Kernel {
 public:
  Adamw8bitKernel(const Graph& graph, const Node& node)
      : length_(graph.shape(node.inputs[2]).back()), blocks_(num_elements(graph.shape(node.inputs[3]))),
        grad_(graph.dtype(node.inputs[1])), beta1_(node.attrs.get_double("beta1")),
        beta2_(node.attrs.get_double("beta2")), eps_(node.attrs.get_double("eps")),
        decay_(node.attrs.get_double("decay")) {}

  void run(std::span<const void* const> in, std::span<void* const> out) override {
    auto scalar = [&](size_t i) { return double(*static_cast<const float*>(in[i])); };
    double lr = scalar(6), scale = scalar(7), step = scalar(8);
    Scalars s{.scale = float(scale),
              .kept = float(1 - lr * decay_),
              .rate = float(lr / (1 - std::pow(beta1_, step))),
              .root = float(1 / std::sqrt(1 - std::pow(beta2_, step)))};
    parallel_for(blocks_, 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t block = begin; block < end; ++block) scale == 0 ? keep(in, out, block) : update(s, in, out, block);
    });
  }

 private:
  struct Scalars {
    float scale, kept, rate, root;  // param * kept - rate * m / (sqrt(v) * root + eps)
  };

  void keep(std::span<const void* const> in, std::span<void* const> out, int64_t block) const {
    for (size_t o = 0; o < out.size(); ++o) {
      int64_t bytes = o == 0 ? 4 * length_ : o % 2 == 1 ? length_ : 4;
      const auto* from = static_cast<const std::byte*>(in[o == 0 ? 0 : o + 1]);
      std::copy_n(from + block * bytes, bytes, static_cast<std::byte*>(out[o]) + block * bytes);
    }
  }

  void update(const Scalars& s, std::span<const void* const> in, std::span<void* const> out, int64_t block) const {
    Floats grad, m, v;
    load(grad_, in[1], block * length_, length_, grad.data());
    widen(of_m_, in[2], in[3], block, m);
    widen(of_v_, in[4], in[5], block, v);
    const float* param = static_cast<const float*>(in[0]) + block * length_;
    float* to = static_cast<float*>(out[0]) + block * length_;
    auto beta1 = float(beta1_), new1 = float(1 - beta1_), beta2 = float(beta2_), new2 = float(1 - beta2_);
    auto eps = float(eps_);
    for (size_t i = 0; i < size_t(length_); ++i) {
      float g = grad[i] * s.scale;
      m[i] = beta1 * m[i] + new1 * g;
      v[i] = beta2 * v[i] + new2 * g * g;
      to[i] = param[i] * s.kept - s.rate * m[i] / (std::sqrt(v[i]) * s.root + eps);
    }
    narrow(of_m_, m, block, out[1], out[2]);
    narrow(of_v_, v, block, out[3], out[4]);
  }

  void widen(const DynamicMap& map, const void* codes, const void* scales, int64_t block, Floats& values) const {
    const uint8_t* code = static_cast<const uint8_t*>(codes) + block * length_;
    float scale = static_cast<const float*>(scales)[block];
    for (size_t i = 0; i < size_t(length_); ++i) values[i] = map.value(code[i]) * scale;
  }

  void narrow(const DynamicMap& map, const Floats& values, int64_t block, void* codes, void* scales) const {
    float largest = 0;
    for (size_t i = 0; i < size_t(length_); ++i) largest = std::max(largest, std::fabs(values[i]));
    static_cast<float*>(scales)[block] = largest;
    uint8_t* code = static_cast<uint8_t*>(codes) + block * length_;
    for (size_t i = 0; i < size_t(length_); ++i) code[i] = map.code(largest > 0 ? values[i] / largest : 0);
  }

  int64_t length_, blocks_;
  DType grad_;
  double beta1_, beta2_, eps_, decay_;
  DynamicMap of_m_{true}, of_v_{false};
};

}  // namespace

std::unique_ptr<Kernel> make_adamw8bit_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<Adamw8bitKernel>(graph, node);
}

}  // namespace tokamak::cpu
